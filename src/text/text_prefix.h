// The control tokens that a checkpoint's own tokenizer puts in front of every plain text (BOS).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace winnow::text {

// From tokenizer.json's post_processor, else add_bos_token and bos_token of tokenizer_config.json.
// Empty where neither asks for any. Chat templates write theirs themselves. Throws Error naming
// the file.
std::vector<int32_t> load_text_prefix(const std::string& tokenizer_path,
                                      const Tokenizer& tokenizer);

}  // namespace winnow::text
