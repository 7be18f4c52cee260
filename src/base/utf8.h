// Checks text at the rate of memory.
#pragma once

#include <string_view>

namespace winnow {

bool is_valid_utf8(std::string_view text);

}  // namespace winnow
