// Unicode Normalization Form C.
#pragma once

#include <string>
#include <string_view>

namespace winnow::text {

// text: valid UTF-8. Characters newer than libutf8proc's tables stay as they are.
std::string nfc(std::string_view text);

}  // namespace winnow::text
