// A tokenizer.json made on the spot: bytes, the merges a test names, added tokens.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace winnow::testing {

struct TinyTokenizerSpec {
  // Raw bytes, e.g. {" t", "he"}; both sides must be bytes or results of earlier merges.
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<text::AddedToken> added_tokens;  // ids as given
  bool merges_as_pairs = false;
  bool ignore_merges = false;
};

// Byte b has id b; the result of merge i has id 256 + i.
inline constexpr int32_t kTinyFirstMerge = 256;
// Where tiny_glm_added_tokens() begin.
inline constexpr int32_t kTinyFirstAdded = 1000;

// <|endoftext|> [gMASK] <sop> <|system|> <|user|> <|assistant|> <|observation|> are special;
// <think> </think> <tool_call> </tool_call> <arg_key> </arg_key> are not.
std::vector<text::AddedToken> tiny_glm_added_tokens();

// With GLM's pattern and no normalizer.
json::Value tiny_tokenizer_json(const TinyTokenizerSpec& spec);
std::unique_ptr<text::Tokenizer> make_tiny_tokenizer(const TinyTokenizerSpec& spec);
// No merges, GLM's added tokens.
std::unique_ptr<text::Tokenizer> make_byte_tokenizer();

}  // namespace winnow::testing
