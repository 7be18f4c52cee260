// The printable characters that stand for bytes in byte-level vocabularies (GPT-2's alphabet).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace winnow::text {

// The character that stands for a byte, in UTF-8.
std::string byte_symbol(uint8_t byte);
// The bytes that a vocabulary entry spells; nothing where a character is not of the alphabet.
// text: valid UTF-8.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace winnow::text
