#include "text/detokenizer.h"

#include "text/unicode_utf8.h"

namespace winnow::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

std::string Detokenizer::append(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (!(skip_special_tokens_ && tokenizer_.is_special(id)))
      pending_ += tokenizer_.token_bytes(id);
  }
  std::string text;
  const size_t unfinished = append_repaired_prefix(text, pending_);
  pending_.erase(0, pending_.size() - unfinished);
  return text;
}

std::string Detokenizer::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return unfinished ? std::string(kReplacement) : "";
}

}  // namespace winnow::text
