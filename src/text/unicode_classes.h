// Character classes that tokenizer patterns name, at Unicode 16.0: the version inside Hugging Face
// `tokenizers`, found by asking it for every code point (tools/make_unicode_classes.py --compare).
#pragma once

#include <cstdint>

#include "text/unicode_utf8.h"

namespace winnow::text {

// One code point may be in several.
enum CharClass : uint16_t {
  kUpper = 1 << 0,        // Lu Lt
  kLower = 1 << 1,        // Ll
  kUncased = 1 << 2,      // Lm Lo
  kNumber = 1 << 3,       // N
  kMark = 1 << 4,         // M
  kPunctSymbol = 1 << 5,  // P S
  kSpace = 1 << 6,        // \s: White_Space
  kHan = 1 << 7,          // script Han
  kWord = 1 << 8,         // \w of Rust's regex: Alphabetic M Nd Pc Join_Control
  kNewline = 1 << 9,      // \r and \n only
  kCjkRange = 1 << 10,    // U+4E00-9FA5, U+3040-30FF: what DeepSeek's second split isolates
  kAsciiLetter = 1 << 11,
  kLetter = kUpper | kLower | kUncased,
};

// CharClass flags of every code point, indexed by it.
const uint16_t* char_class_table();

// Walks trusted UTF-8 by class. Cheap to copy.
class ClassCursor {
 public:
  ClassCursor() : table_(char_class_table()) {}

  struct Char {
    uint16_t flags;
    uint8_t size;  // bytes
  };
  // p < the text's end.
  Char at(const char* p) const {
    const auto first = static_cast<unsigned char>(*p);
    if (first < 0x80) return {table_[first], 1};
    const CodePoint c = decode_trusted(p);
    return {table_[c.value], c.size};
  }
  // Flags at p; 0 at the end, which is in no class.
  uint16_t flags(const char* p, const char* end) const { return p == end ? 0 : at(p).flags; }

  // The first character at or after p that is in none of these classes.
  const char* skip(const char* p, const char* end, uint16_t classes) const {
    while (p != end) {
      const Char c = at(p);
      if (!(c.flags & classes)) break;
      p += c.size;
    }
    return p;
  }
  // The first character at or after p that is in one of these classes.
  const char* skip_until(const char* p, const char* end, uint16_t classes) const {
    while (p != end) {
      const Char c = at(p);
      if (c.flags & classes) break;
      p += c.size;
    }
    return p;
  }

 private:
  const uint16_t* table_;
};

}  // namespace winnow::text
