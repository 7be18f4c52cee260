// Cuts text into the pieces that BPE merges within: tokenizer.json's pre_tokenizer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::text {

// Thread-safe: split is const and keeps nothing.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // text: valid UTF-8. Appends base + the end offset of each piece, in order; the pieces cover the
  // text. Empty text has no pieces. Linear in the text, no recursion.
  virtual void split(std::string_view text, size_t base, std::vector<size_t>& ends) const = 0;
};

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+ : GLM-4.5 to 5.2 and Llama 3 with D = 3, Qwen2 with D = 1.
std::unique_ptr<PreTokenizer> make_glm_pretokenizer(int max_digits);
// DeepSeek V3 to V3.2: numbers, then CJK, then words, each an isolating split of the one before.
std::unique_ptr<PreTokenizer> make_deepseek_pretokenizer();
// Kimi-K2's pattern.
std::unique_ptr<PreTokenizer> make_kimi_pretokenizer();
// Any other pattern of tokenizer.json (Oniguruma syntax), by PCRE2's JIT. literal: a plain string.
// Throws Error, beginning with `where`, on what PCRE2 lacks or reads differently.
std::unique_ptr<PreTokenizer> make_regex_pretokenizer(const std::string& pattern,
                                                      bool literal,
                                                      const std::string& where);

// From tokenizer.json's pre_tokenizer member: Split (behavior Isolated) and ByteLevel, alone or in
// Sequences; ByteLevel must close the list. Throws Error naming file and field.
std::unique_ptr<PreTokenizer> load_pretokenizer(const json::Value& pre_tokenizer,
                                                const std::string& file);

}  // namespace winnow::text
