#include "text/chat_format.h"

#include <filesystem>
#include <optional>

#include "base/mapped_file.h"
#include "text/chat_jinja_format.h"
#include "text/deepseek_v32_chat.h"

namespace winnow::text {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<ChatFormat> make_deepseek_v31_format() {
  ChatTemplate chat_template;
  chat_template.source = kDeepseekV31Template;
  chat_template.special_tokens = {{"bos_token", "<｜begin▁of▁sentence｜>"},
                                  {"eos_token", "<｜end▁of▁sentence｜>"}};
  return make_jinja_format(chat_template, "built-in template of DeepSeek-V3.1");
}

// Formats of families whose checkpoints may come without a template.
struct BuiltIn {
  std::string_view architecture;
  std::unique_ptr<ChatFormat> (*make)();
};
constexpr BuiltIn kBuiltIns[] = {
    {"DeepseekV32ForCausalLM", make_deepseek_v32_format},
    {"DeepseekV3ForCausalLM", make_deepseek_v31_format},
};

json::Value read_tokenizer_config(const fs::path& path) {
  if (!fs::exists(path)) return json::Object{};
  auto parsed = json::parse(read_file(path.string()));
  if (!parsed.ok()) throw_error("{}: {}", path.string(), parsed.status().message);
  if (!parsed.value().is_object()) throw_error("{}: must hold an object", path.string());
  return std::move(parsed.value());
}

void read_special_tokens(const json::Value& config, ChatTemplate& into) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    const json::Value* token = config.find(name);
    if (token && token->is_object()) token = token->find("content");
    if (token && token->is_string()) into.special_tokens.emplace_back(name, token->as_string());
  }
}

// chat_template: one template, or a list of named ones, of which "default" and "tool_use" count.
void read_config_template(const json::Value& config, ChatTemplate& into) {
  const json::Value* given = config.find("chat_template");
  if (!given) return;
  if (given->is_string()) into.source = given->as_string();
  if (!given->is_array()) return;
  for (const json::Value& entry : given->as_array()) {
    const json::Value* name = entry.find("name");
    const json::Value* source = entry.find("template");
    if (!name || !name->is_string() || !source || !source->is_string()) continue;
    if (name->as_string() == "default") into.source = source->as_string();
    if (name->as_string() == "tool_use") into.tool_source = source->as_string();
  }
}

}  // namespace

std::unique_ptr<ChatFormat> load_chat_format(const std::string& model_path,
                                             std::string_view architecture) {
  const fs::path folder(model_path);
  const fs::path config_path = folder / "tokenizer_config.json";
  const fs::path template_path = folder / "chat_template.jinja";
  const json::Value config = read_tokenizer_config(config_path);
  ChatTemplate chat_template;
  read_special_tokens(config, chat_template);
  if (fs::exists(template_path)) {
    chat_template.source = read_file(template_path.string());
    return make_jinja_format(chat_template, template_path.string());
  }
  read_config_template(config, chat_template);
  if (!chat_template.source.empty()) {
    return make_jinja_format(chat_template, config_path.string() + ", chat_template");
  }
  for (const BuiltIn& built_in : kBuiltIns) {
    if (built_in.architecture == architecture) return built_in.make();
  }
  return nullptr;
}

std::string joined(const std::vector<PromptPiece>& pieces) {
  std::string text;
  for (const PromptPiece& piece : pieces) text += piece.text;
  return text;
}

std::string control_text(const std::vector<PromptPiece>& pieces) {
  std::string text;
  for (const PromptPiece& piece : pieces) {
    if (piece.control == ControlTokens::kParse) {
      text += piece.text;
    } else {
      text.push_back('\n');
    }
  }
  return text;
}

}  // namespace winnow::text
