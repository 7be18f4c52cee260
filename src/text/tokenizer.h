// Text to token ids and back. Byte-level BPE of tokenizer.json and Kimi's tiktoken.model.
// Thread-safe after construction: every call is const.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace winnow::text {

// A token outside the merges: a control token or a tag. The flags are tokenizer.json's.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // hidden by skip_special_tokens
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // ... and behind it
  bool single_word = false;  // only where no word character stands beside it
  bool normalized = false;   // looked for in the normalized text
};

// How control tokens that stand in the text are taken.
enum class ControlTokens {
  kParse,  // "<|user|>" becomes its one id: for text that we rendered ourselves
  kPlain,  // "<|user|>" is encoded as ordinary characters: for what a user wrote; all added tokens
};

// A stretch of a rendered prompt: ours (control tokens count) or somebody's content (they do not).
struct PromptPiece {
  std::string text;
  ControlTokens control = ControlTokens::kParse;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Text must be UTF-8; invalid bytes are taken as U+FFFD. Adds no BOS and no EOS.
  virtual std::vector<int32_t> encode(std::string_view text, ControlTokens control) const = 0;
  // Pieces are encoded as one text with regard to merges: a piece border is no token border,
  // it only says where control tokens are honoured. One is taken only where all of it stands in
  // kParse text, and nothing else gives its id (fault B88).
  virtual std::vector<int32_t> encode(std::span<const PromptPiece> pieces) const = 0;

  // Raw bytes of one token: may be part of a UTF-8 character. Empty for an id that is not there.
  virtual std::string_view token_bytes(int32_t id) const = 0;
  // Whole text; broken UTF-8 becomes U+FFFD. Unknown ids give nothing.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const = 0;

  virtual bool is_special(int32_t id) const = 0;  // hidden by skip_special_tokens
  virtual const std::vector<AddedToken>& added_tokens() const = 0;
  virtual std::optional<int32_t> token_id(std::string_view content) const = 0;  // exact content
  virtual int32_t vocab_size() const = 0;                                       // largest id + 1
};

// Reads tokenizer.json, or tiktoken.model with tokenizer_config.json (Kimi), from a checkpoint
// folder. Throws Error naming the file and the field.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model_path);

}  // namespace winnow::text
