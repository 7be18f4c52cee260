// A tokenizer without files: one id a byte, then a few control tokens and whole words.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace winnow::testing {

class ByteTokenizer final : public text::Tokenizer {
 public:
  static constexpr int32_t kEos = 256;        // "<|end|>", special
  static constexpr int32_t kUser = 257;       // "<|user|>", special
  static constexpr int32_t kAssistant = 258;  // "<|assistant|>", special
  static constexpr int32_t kThink = 259;      // "<think>"
  static constexpr int32_t kEndThink = 260;   // "</think>"
  static constexpr int32_t kFirstWord = 261;  // the words given

  explicit ByteTokenizer(std::vector<std::string> words = {});

  using text::Tokenizer::encode;
  std::vector<int32_t> encode(std::string_view text, text::ControlTokens control) const override;
  std::vector<int32_t> encode(std::span<const text::PromptPiece> pieces) const override;
  std::string_view token_bytes(int32_t id) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override;
  bool is_special(int32_t id) const override { return id >= kEos && id <= kAssistant; }
  const std::vector<text::AddedToken>& added_tokens() const override { return added_; }
  std::optional<int32_t> token_id(std::string_view content) const override;
  int32_t vocab_size() const override;

 private:
  std::array<char, 256> bytes_;
  std::vector<text::AddedToken> added_;
  std::vector<std::string> words_;
};

// "héllo" -> its bytes as ids.
std::vector<int32_t> byte_ids(std::string_view text);

}  // namespace winnow::testing
