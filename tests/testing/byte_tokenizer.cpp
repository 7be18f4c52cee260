#include "testing/byte_tokenizer.h"

#include "text/detokenizer.h"

namespace winnow::testing {

ByteTokenizer::ByteTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
  for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
  added_ = {{kEos, "<|end|>", true},
            {kUser, "<|user|>", true},
            {kAssistant, "<|assistant|>", true},
            {kThink, "<think>", false},
            {kEndThink, "</think>", false}};
}

std::vector<int32_t> ByteTokenizer::encode(std::string_view text,
                                           text::ControlTokens control) const {
  std::vector<int32_t> ids;
  while (!text.empty()) {
    const text::AddedToken* found = nullptr;
    if (control == text::ControlTokens::kParse) {
      for (const text::AddedToken& token : added_) {
        if (text.starts_with(token.content)) found = &token;
      }
    }
    ids.push_back(found != nullptr ? found->id : static_cast<unsigned char>(text.front()));
    text.remove_prefix(found != nullptr ? found->content.size() : 1);
  }
  return ids;
}

std::vector<int32_t> ByteTokenizer::encode(std::span<const text::PromptPiece> pieces) const {
  std::vector<int32_t> ids;
  for (const text::PromptPiece& piece : pieces) {
    const auto part = encode(piece.text, piece.control);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

std::string_view ByteTokenizer::token_bytes(int32_t id) const {
  if (id >= 0 && id < 256) return {&bytes_[static_cast<size_t>(id)], 1};
  if (id >= kEos && id < kFirstWord) return added_[static_cast<size_t>(id - kEos)].content;
  const auto word = static_cast<size_t>(id - kFirstWord);
  return id >= kFirstWord && word < words_.size() ? words_[word] : std::string_view();
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  text::Detokenizer detokenizer(*this, skip_special_tokens);
  std::string out = detokenizer.append(ids);
  return out + detokenizer.finish();
}

std::optional<int32_t> ByteTokenizer::token_id(std::string_view content) const {
  for (const text::AddedToken& token : added_) {
    if (token.content == content) return token.id;
  }
  return std::nullopt;
}

int32_t ByteTokenizer::vocab_size() const {
  return kFirstWord + static_cast<int32_t>(words_.size());
}

std::vector<int32_t> byte_ids(std::string_view text) {
  return ByteTokenizer().encode(text, text::ControlTokens::kPlain);
}

}  // namespace winnow::testing
