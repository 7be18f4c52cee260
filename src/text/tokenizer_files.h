// Readers of the files a checkpoint's tokenizer may lie in. Each throws Error naming file and
// field.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace winnow::text {

// tokenizer.json of Hugging Face `tokenizers`: byte-level BPE only. file: its name in messages.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view content, const std::string& file);

// tiktoken.model ("base64 rank" lines) and the added_tokens_decoder of tokenizer_config.json, cut
// by Kimi's pattern, which stands in no file.
std::unique_ptr<Tokenizer> parse_tiktoken(std::string_view ranks,
                                          const std::string& ranks_file,
                                          std::string_view config,
                                          const std::string& config_file);

}  // namespace winnow::text
