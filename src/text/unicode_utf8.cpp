#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

struct Sequence {
  size_t size;    // bytes that belong together
  bool complete;  // a whole character
  bool open;      // complete but for bytes beyond the end of the text
};

// The longest start of a character at the front of text, by Table 3-7 of the Unicode Standard:
// only the second byte has a range that depends on the first.
Sequence first_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, true, false};
  size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {1, false, false};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, false, true};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true, false};
}

}  // namespace

void append_utf8(std::string& out, uint32_t code_point) {
  const auto push = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

size_t append_repaired_prefix(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const Sequence sequence = first_sequence(text);
    if (sequence.open) return text.size();
    if (sequence.complete) {
      out.append(text.substr(0, sequence.size));
    } else {
      out.append(kReplacement);
    }
    text.remove_prefix(sequence.size);
  }
  return 0;
}

std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (append_repaired_prefix(out, text) != 0) out.append(kReplacement);
  return out;
}

}  // namespace winnow::text
