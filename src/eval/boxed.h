// What stands in the last \boxed{...} of an answer.
#pragma once

#include <optional>
#include <string_view>

namespace winnow::eval {

// Braces inside are balanced; \fbox and "\boxed 5" (one word) count too.
std::optional<std::string_view> last_boxed(std::string_view text);

// The index of the brace that closes the one at `open`, or npos.
size_t closing_brace(std::string_view text, size_t open);

}  // namespace winnow::eval
