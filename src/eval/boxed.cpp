#include "eval/boxed.h"

#include <algorithm>

#include "eval/text_folding.h"

namespace winnow::eval {

size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;  // \{ and \} are signs, not braces
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::optional<std::string_view> last_boxed(std::string_view text) {
  std::string_view command = "\\boxed";
  size_t at = text.rfind(command);
  const size_t fbox = text.rfind("\\fbox");
  if (fbox != std::string_view::npos && (at == std::string_view::npos || fbox > at)) {
    command = "\\fbox";
    at = fbox;
  }
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = trimmed(text.substr(at + command.size()));
  if (rest.empty()) return std::nullopt;
  if (rest.front() == '{') {
    const size_t close = closing_brace(rest, 0);
    if (close == std::string_view::npos) return std::nullopt;
    return trimmed(rest.substr(1, close - 1));
  }
  return rest.substr(0, std::min(rest.find_first_of(" \t\r\n$"), rest.size()));
}

}  // namespace winnow::eval
