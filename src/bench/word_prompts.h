// Prompts of an exact number of tokens out of a tokenizer's own words, where no text is at hand:
// words in random order, so that no two prompts share a beginning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/python_random.h"
#include "text/tokenizer.h"

namespace winnow::bench {

class WordPrompts {
 public:
  // Throws Error for a tokenizer without a plain letter.
  explicit WordPrompts(const text::Tokenizer& tokenizer);

  // num_tokens words' ids.
  std::vector<int32_t> ids(int64_t num_tokens, PythonRandom& random) const;
  // A text that encodes to num_tokens tokens, or to nearly so many where the tokenizer's merges
  // allow no more.
  std::string text(int64_t num_tokens, PythonRandom& random) const;

 private:
  const text::Tokenizer& tokenizer_;
  std::vector<int32_t> words_;  // ids of " word"; of single letters where there are too few
};

}  // namespace winnow::bench
