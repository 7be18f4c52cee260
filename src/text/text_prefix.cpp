#include "text/text_prefix.h"

#include <fstream>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace winnow::text {
namespace {

std::optional<json::Value> read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Result<json::Value> parsed = json::parse(text);
  if (!parsed.ok()) throw_error("{}: {}", path, parsed.status().message);
  return std::move(parsed.value());
}

// A TemplateProcessing step: {"single": [{"SpecialToken": {"id": "<bos>"}}, {"Sequence": ...}]}.
void append_template_prefix(const json::Value& step,
                            const Tokenizer& tokenizer,
                            std::vector<int32_t>& prefix) {
  const json::Value* single = step.find("single");
  if (single == nullptr || !single->is_array()) return;
  for (const json::Value& item : single->as_array()) {
    const json::Value* special = item.find("SpecialToken");
    if (special == nullptr) return;  // the text itself
    const json::Value* name = special->find("id");
    if (name == nullptr || !name->is_string()) return;
    if (const auto id = tokenizer.token_id(name->as_string())) prefix.push_back(*id);
  }
}

void read_post_processor(const json::Value& processor,
                         const Tokenizer& tokenizer,
                         std::vector<int32_t>& prefix) {
  append_template_prefix(processor, tokenizer, prefix);
  const json::Value* steps = processor.find("processors");  // of a Sequence
  if (steps == nullptr || !steps->is_array()) return;
  for (const json::Value& step : steps->as_array()) {
    append_template_prefix(step, tokenizer, prefix);
  }
}

}  // namespace

std::vector<int32_t> load_text_prefix(const std::string& tokenizer_path,
                                      const Tokenizer& tokenizer) {
  std::vector<int32_t> prefix;
  if (const auto file = read_json(tokenizer_path + "/tokenizer.json")) {
    if (const json::Value* processor = file->find("post_processor")) {
      read_post_processor(*processor, tokenizer, prefix);
    }
  }
  if (!prefix.empty()) return prefix;
  const auto config = read_json(tokenizer_path + "/tokenizer_config.json");
  if (!config) return prefix;
  const json::Value* add = config->find("add_bos_token");
  const json::Value* bos = config->find("bos_token");
  if (add == nullptr || !add->is_bool() || !add->as_bool() || bos == nullptr) return prefix;
  if (bos->is_object()) bos = bos->find("content");
  if (bos == nullptr || !bos->is_string()) return prefix;
  if (const auto id = tokenizer.token_id(bos->as_string())) prefix.push_back(*id);
  return prefix;
}

}  // namespace winnow::text
