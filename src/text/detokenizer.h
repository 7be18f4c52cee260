// Ids to text as they come, never half a character (faults B85, B86, B89).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "text/tokenizer.h"

namespace winnow::text {

// One per generated choice; the tokenizer must outlive it. All text returned, joined, equals
// Tokenizer::decode of all ids, however they were cut into steps. The prompt plays no part:
// byte-level tokens carry their blanks with them.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  // Text that is complete after these ids; "" while a character is unfinished. A byte that can
  // no longer become part of a character comes out as U+FFFD at once.
  std::string append(std::span<const int32_t> ids);
  // What an unfinished character leaves behind, as U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;  // up to 3 bytes of an unfinished character
};

}  // namespace winnow::text
