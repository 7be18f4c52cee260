// How the widely used few-shot GSM8K script reads a number, faults included, so that its scores can
// be reproduced: commas vanish, the last run of digits counts, signs and decimals do not ("18.00"
// is 0, "-3" is 3), and a leading zero makes it invalid.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace winnow::eval {

// The digits; nothing where the script says invalid.
std::optional<std::string> gsm8k_script_number(std::string_view text);

}  // namespace winnow::eval
