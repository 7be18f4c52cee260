// The one Tokenizer: added tokens, then normalizer, then pre-tokenizer, then byte-level BPE.
// tokenizer_json.cpp and tiktoken.cpp fill it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_added.h"

namespace winnow::text {

struct BpeTokenizerParts {
  BpeModel model;  // without the added tokens' ids in whole_words and merge results
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::vector<AddedToken> added_tokens;
  bool nfc = false;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeTokenizerParts parts);
  BpeTokenizer(const BpeTokenizer&) = delete;  // ids_by_content_ points into this
  BpeTokenizer& operator=(const BpeTokenizer&) = delete;

  std::vector<int32_t> encode(std::string_view text, ControlTokens control) const override;
  std::vector<int32_t> encode(std::span<const PromptPiece> pieces) const override;
  std::string_view token_bytes(int32_t id) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override;
  bool is_special(int32_t id) const override;
  const std::vector<AddedToken>& added_tokens() const override { return added_tokens_; }
  std::optional<int32_t> token_id(std::string_view content) const override;
  int32_t vocab_size() const override { return vocab_size_; }

 private:
  struct Call;  // what one encode call needs
  std::vector<int32_t> encode(const MarkedText& marked) const;
  void encode_normalized(const MarkedText& marked, size_t begin, size_t end, Call& call) const;
  const AddedToken* added(int32_t id) const;

  Bpe bpe_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::vector<AddedToken> added_tokens_;
  std::unordered_map<int32_t, size_t> added_by_id_;
  std::unordered_map<std::string_view, int32_t> ids_by_content_;  // views of bpe_ and added_tokens_
  AddedTokenMatcher before_normalizer_, after_normalizer_;
  bool nfc_;
  int32_t vocab_size_;
};

}  // namespace winnow::text
