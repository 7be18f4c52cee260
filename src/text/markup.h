// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace winnow::text {

// & < > " ' as entities; control characters that markup does not allow and broken UTF-8 as U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace winnow::text
