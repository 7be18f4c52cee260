// sharegpt and custom: real first turns, and answers as long as the real ones.
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "bench/dataset.h"

namespace winnow::bench {

namespace {

constexpr int64_t kMinTokens = 2;
constexpr int64_t kMinFixedOutput = 4;
constexpr std::string_view kAssistant = "Assistant:";

std::string turn_text(const json::Value& turn) {
  for (const char* key : {"content", "value"}) {
    const json::Value* text = turn.find(key);
    if (text != nullptr && text->is_string()) return text->as_string();
  }
  return "";
}

void append_conversation(const json::Value& row, std::vector<Conversation>& out) {
  const json::Value* turns = row.find("conversations");
  if (turns == nullptr) turns = row.find("conversation");
  if (turns == nullptr || !turns->is_array() || turns->as_array().size() < 2) return;
  out.push_back({turn_text(turns->as_array()[0]), turn_text(turns->as_array()[1])});
}

std::string with_suffix(std::string prompt, const std::string& suffix) {
  if (suffix.empty()) return prompt;
  if (prompt.ends_with(kAssistant)) prompt.resize(prompt.size() - kAssistant.size());
  return prompt + suffix + std::string(kAssistant);
}

}  // namespace

std::vector<Conversation> read_conversations(const std::string& path, bool lines) {
  std::string text = dataset_text(path);
  std::vector<Conversation> out;
  constexpr json::ParseLimits kLimits{.max_depth = 512, .reject_duplicate_keys = false};
  if (lines) {
    std::istringstream file(std::move(text));
    for (std::string line; std::getline(file, line);) {
      if (auto row = json::parse(line, kLimits); row.ok()) append_conversation(row.value(), out);
    }
    return out;
  }
  auto rows = json::parse(text, kLimits);
  if (!rows.ok()) throw_error("--dataset-path {}: {}", path, rows.status().message);
  if (!rows.value().is_array()) throw_error("--dataset-path {}: not a list of conversations", path);
  for (const json::Value& row : rows.value().as_array()) append_conversation(row, out);
  return out;
}

std::vector<PromptRow> conversation_prompts(const DatasetOptions& options,
                                            const DatasetContext& context) {
  if (options.sharegpt_output_len != 0 && options.sharegpt_output_len < kMinFixedOutput) {
    throw_error("--sharegpt-output-len: at least {}", kMinFixedOutput);
  }
  if (options.path.empty()) {
    throw_error(
        "--dataset-name {0} wants --dataset-path; for sharegpt, "
        "ShareGPT_V3_unfiltered_cleaned_split.json; --dataset-name random needs no file",
        options.name);
  }
  auto conversations = read_conversations(options.path, options.name == "custom");
  context.random.python.shuffle(conversations);
  std::vector<PromptRow> rows;
  const auto encode = [&](const std::string& text) {
    return context.tokenizer.encode(text, text::ControlTokens::kPlain);
  };
  const auto count = [&](const std::string& text) {
    return static_cast<int64_t>(encode(text).size()) + context.num_prefix_tokens;
  };
  for (Conversation& conversation : conversations) {
    if (static_cast<int64_t>(rows.size()) == options.num_prompts) break;
    PromptRow row;
    row.text = with_suffix(std::move(conversation.prompt), options.prompt_suffix);
    row.prompt_len = count(row.text);
    row.output_len =
        options.sharegpt_output_len > 0 ? options.sharegpt_output_len : count(conversation.answer);
    const bool too_short = row.prompt_len < kMinTokens || row.output_len < kMinTokens;
    const bool too_long = options.sharegpt_context_len > 0 &&
                          row.prompt_len + row.output_len > options.sharegpt_context_len;
    if (too_short || too_long) continue;
    if (options.as_ids) {
      row.ids = encode(row.text);
      row.prompt_len -= context.num_prefix_tokens;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace winnow::bench
