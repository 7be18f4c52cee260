// Prompts as text or as token ids, one or many: "prompt" of completions, "text" and "input_ids"
// of /generate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/api.h"
#include "server/protocol_reader.h"

namespace winnow::server {

struct PromptInput {
  std::vector<int32_t> ids;
  std::string text = {};  // as given; of ids: none
};

struct PromptInputs {
  std::vector<PromptInput> prompts;
  bool batch = false;  // given as a list, even of one
};

// "x" or ["x", "y"]: control tokens in the text count, as the whole prompt is the client's.
PromptInputs read_text_prompts(ObjectReader& reader, std::string_view key, const Api& api);
// [1, 2] or [[1, 2], [3]].
PromptInputs read_id_prompts(ObjectReader& reader, std::string_view key, const Api& api);
// Either of them, by what the value is.
PromptInputs read_prompts(ObjectReader& reader, std::string_view key, const Api& api);

}  // namespace winnow::server
