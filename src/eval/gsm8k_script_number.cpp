#include "eval/gsm8k_script_number.h"

#include "eval/text_folding.h"
#include "text/unicode_utf8.h"

namespace winnow::eval {

std::optional<std::string> gsm8k_script_number(std::string_view text) {
  constexpr size_t kLongestLiteral = 4300;  // Python reads no longer one
  const std::string valid = text::repaired_utf8(text);
  std::string run;
  std::string last;
  for (size_t i = 0; i < valid.size();) {
    const text::CodePoint c = text::decode_trusted(valid.data() + i);
    if (digit_value(c.value) >= 0) {
      run.append(valid, i, c.size);
    } else if (c.value != ',') {
      if (!run.empty()) last = std::move(run);
      run.clear();
    }
    i += c.size;
  }
  if (!run.empty()) last = std::move(run);
  if (last.empty() || last.size() > kLongestLiteral) return std::nullopt;
  const bool ascii = last.find_first_not_of("0123456789") == std::string::npos;
  if (!ascii) return std::nullopt;  // \d finds them, the literal does not read them
  const size_t first = last.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  if (first > 0) return std::nullopt;
  return last;
}

}  // namespace winnow::eval
