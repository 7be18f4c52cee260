#include "text/bpe_byte_alphabet.h"

#include <array>

#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

constexpr uint32_t kFirstMoved = 0x100;  // bytes that are not printable follow from here, in order
constexpr uint32_t kAlphabetEnd = 0x144;

constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint16_t, 256> point_of_byte() {
  std::array<uint16_t, 256> points{};
  uint32_t moved = kFirstMoved;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    points[byte] = static_cast<uint16_t>(is_printable(byte) ? byte : moved++);
  }
  return points;
}
constexpr auto kPointOfByte = point_of_byte();

constexpr std::array<int16_t, kAlphabetEnd> byte_of_point() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bytes[kPointOfByte[byte]] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr auto kByteOfPoint = byte_of_point();

}  // namespace

std::string byte_symbol(uint8_t byte) {
  std::string symbol;
  append_utf8(symbol, kPointOfByte[byte]);
  return symbol;
}

std::optional<std::string> bytes_of_symbols(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_trusted(text.data() + at);
    if (c.value >= kAlphabetEnd || kByteOfPoint[c.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOfPoint[c.value]));
    at += c.size;
  }
  return bytes;
}

}  // namespace winnow::text
