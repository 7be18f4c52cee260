#include "text/markup.h"

#include "text/unicode_utf8.h"

namespace winnow::text {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        control || c == 0x7f ? out += kReplacement : out += c;
      }
    }
  }
  return repaired_utf8(out);
}

}  // namespace winnow::text
