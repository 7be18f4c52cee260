#include "server/prompt_input.h"

#include <utility>

#include "server/limits.h"

namespace winnow::server {
namespace {

PromptInput from_text(const Api& api, std::string text) {
  PromptInput prompt{.ids = api.config.text_prefix_ids, .text = std::move(text)};
  const auto ids = api.tokenizer.encode(prompt.text, text::ControlTokens::kParse);
  // A client that writes the prefix itself does not get it twice.
  if (ids.size() >= prompt.ids.size() &&
      std::equal(prompt.ids.begin(), prompt.ids.end(), ids.begin())) {
    prompt.ids.clear();
  }
  prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
  return prompt;
}

void check_not_empty(ObjectReader& reader, std::string_view key, const PromptInputs& inputs) {
  if (!reader.ok()) return;
  if (inputs.prompts.empty()) reader.fail(key, "cannot be empty");
  for (const PromptInput& prompt : inputs.prompts) {
    if (prompt.ids.empty()) reader.fail(key, "cannot be empty");
  }
}

}  // namespace

PromptInputs read_text_prompts(ObjectReader& reader, std::string_view key, const Api& api) {
  PromptInputs inputs;
  const json::Value* value = reader.find(key);
  inputs.batch = value != nullptr && value->is_array();
  for (std::string& text : reader.strings(key, kMaxPrompts, INT64_MAX)) {
    inputs.prompts.push_back(from_text(api, std::move(text)));
  }
  check_not_empty(reader, key, inputs);
  return inputs;
}

PromptInputs read_id_prompts(ObjectReader& reader, std::string_view key, const Api& api) {
  PromptInputs inputs;
  const json::Value* value = reader.find(key);
  if (value == nullptr) return inputs;
  inputs.batch =
      value->is_array() && !value->as_array().empty() && value->as_array().front().is_array();
  if (!inputs.batch) {
    inputs.prompts.push_back({.ids = reader.ids(key, INT64_MAX, api.config.vocab_size)});
  } else {
    for (auto& ids : reader.id_lists(key, kMaxPrompts, api.config.vocab_size)) {
      inputs.prompts.push_back({.ids = std::move(ids)});
    }
  }
  check_not_empty(reader, key, inputs);
  return inputs;
}

PromptInputs read_prompts(ObjectReader& reader, std::string_view key, const Api& api) {
  const json::Value* value = reader.find(key);
  if (value == nullptr) {
    if (reader.ok()) reader.fail(key, "is required");
    return {};
  }
  const bool ids =
      value->is_array() && !value->as_array().empty() && !value->as_array().front().is_string();
  return ids ? read_id_prompts(reader, key, api) : read_text_prompts(reader, key, api);
}

}  // namespace winnow::server
