// UTF-8 by hand: decoding of checked text, repair of broken text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace winnow::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  uint32_t value;
  uint8_t size;  // bytes, 1 to 4
};

// p stands at the start of a character of valid UTF-8.
inline CodePoint decode_trusted(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

void append_utf8(std::string& out, uint32_t code_point);

// Appends text; every maximal part of a character that is not completed becomes one U+FFFD, as
// Rust's from_utf8_lossy and Python's errors="replace" have it. Bytes at the end that a
// continuation may still complete are left out; returns how many (0 to 3).
size_t append_repaired_prefix(std::string& out, std::string_view text);
// The same for a whole text: an unfinished end becomes U+FFFD.
std::string repaired_utf8(std::string_view text);

}  // namespace winnow::text
