#include "eval/text_folding.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/unicode_utf8.h"

namespace winnow::eval {
namespace {

bool is_decimal_digit(uint32_t code_point) {
  return utf8proc_category(static_cast<int32_t>(code_point)) == UTF8PROC_CATEGORY_ND;
}

char ascii_sign(uint32_t code_point) {
  switch (code_point) {
    case 0x2212:  // minus sign
    case 0xFF0D:
      return '-';
    case 0xFF0C:
      return ',';
    case 0xFF0E:
      return '.';
    default:
      return 0;
  }
}

}  // namespace

int digit_value(uint32_t code_point) {
  if (code_point < 0x80) return code_point >= '0' && code_point <= '9' ? code_point - '0' : -1;
  if (!is_decimal_digit(code_point)) return -1;
  // Digits stand in runs of ten from zero on.
  uint32_t zero = code_point;
  while (is_decimal_digit(zero - 1)) --zero;
  return static_cast<int>((code_point - zero) % 10);
}

std::string with_ascii_digits(std::string_view text) {
  const std::string repaired = text::repaired_utf8(text);
  std::string out;
  out.reserve(repaired.size());
  for (size_t i = 0; i < repaired.size();) {
    const text::CodePoint c = text::decode_trusted(repaired.data() + i);
    const int digit = c.size == 1 ? -1 : digit_value(c.value);
    if (digit >= 0) {
      out.push_back(static_cast<char>('0' + digit));
    } else if (const char sign = ascii_sign(c.value)) {
      out.push_back(sign);
    } else {
      out.append(repaired, i, c.size);
    }
    i += c.size;
  }
  return out;
}

bool is_python_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  while (true) {
    const size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

}  // namespace winnow::eval
