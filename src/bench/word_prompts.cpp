#include "bench/word_prompts.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace winnow::bench {

namespace {

constexpr size_t kMinWords = 64;
constexpr int kMaxCorrections = 16;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

bool is_word(std::string_view bytes) {
  return bytes.size() >= 3 && bytes.front() == ' ' &&
         std::all_of(bytes.begin() + 1, bytes.end(), is_lower);
}

bool is_letter(std::string_view bytes) { return bytes.size() == 1 && is_lower(bytes.front()); }

}  // namespace

WordPrompts::WordPrompts(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  std::vector<int32_t> letters;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    if (is_word(bytes)) words_.push_back(id);
    if (is_letter(bytes)) letters.push_back(id);
  }
  if (words_.size() < kMinWords) words_ = std::move(letters);
  if (words_.empty()) throw_error("the tokenizer has no token that is a word or a letter");
}

std::vector<int32_t> WordPrompts::ids(int64_t num_tokens, PythonRandom& random) const {
  std::vector<int32_t> ids(static_cast<size_t>(num_tokens));
  for (int32_t& id : ids) id = words_[random.below(static_cast<uint32_t>(words_.size()))];
  return ids;
}

std::string WordPrompts::text(int64_t num_tokens, PythonRandom& random) const {
  const auto wanted = static_cast<size_t>(num_tokens);
  std::string text = tokenizer_.decode(ids(num_tokens, random), false);
  for (int i = 0; i < kMaxCorrections; ++i) {
    std::vector<int32_t> got = tokenizer_.encode(text, text::ControlTokens::kPlain);
    if (got.size() == wanted) break;
    if (got.size() > wanted) {
      got.resize(wanted);
    } else {
      const auto more = ids(static_cast<int64_t>(wanted - got.size()), random);
      got.insert(got.end(), more.begin(), more.end());
    }
    text = tokenizer_.decode(got, false);
  }
  return text;
}

}  // namespace winnow::bench
