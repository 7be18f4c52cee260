#include "testing/chat_formats.h"

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "testing/paths.h"
#include "text/chat_jinja_format.h"
#include "text/deepseek_v32_chat.h"

namespace winnow::testing {

std::vector<std::string> chat_format_names() {
  return {"glm5", "glm52", "kimi_k2", "chatml", "deepseek_v31", "deepseek_v32"};
}

std::unique_ptr<text::ChatFormat> make_chat_format(std::string_view name) {
  if (name == "deepseek_v32") return text::make_deepseek_v32_format();
  text::ChatTemplate chat_template;
  chat_template.special_tokens = {{"bos_token", "<｜begin▁of▁sentence｜>"},
                                  {"eos_token", "<｜end▁of▁sentence｜>"}};
  if (name == "deepseek_v31") {
    chat_template.source = text::kDeepseekV31Template;
  } else if (name == "glm5") {
    chat_template.source =
        read_file(std::string(WINNOW_SOURCE_DIR) + "/tools/glm5_chat_template.jinja");
  } else {
    chat_template.source = read_file(data_path("chat/" + std::string(name) + ".jinja"));
  }
  return text::make_jinja_format(chat_template, name);
}

json::Value parse_json(std::string_view text) {
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message;
  return parsed.ok() ? parsed.value() : json::Value();
}

text::ChatRequest chat_request(std::string_view json_text) {
  text::ChatRequest request;
  const json::Value members = parse_json(json_text);
  for (const auto& [name, value] : members.as_object()) {
    if (name == "messages") {
      request.messages = value;
    } else if (name == "tools") {
      request.tools = value;
    } else if (name == "add_generation_prompt") {
      request.add_generation_prompt = value.as_bool();
    } else if (name == "continue_final_message") {
      request.continue_final_message = value.as_bool();
    } else {
      request.chat_template_kwargs.set(name, value);
    }
  }
  return request;
}

std::string render(const text::ChatFormat& format, const text::ChatRequest& request) {
  auto pieces = format.render(request);
  if (!pieces.ok()) return "error: " + pieces.status().message;
  return text::joined(pieces.value());
}

std::string render(std::string_view format_name, std::string_view json_text) {
  return render(*make_chat_format(format_name), chat_request(json_text));
}

std::string render_marked(std::string_view format_name, const text::ChatRequest& request) {
  auto pieces = make_chat_format(format_name)->render(request);
  if (!pieces.ok()) return "error: " + pieces.status().message;
  std::string out;
  for (const text::PromptPiece& piece : pieces.value()) {
    const bool plain = piece.control == text::ControlTokens::kPlain;
    out += plain ? "«" + piece.text + "»" : piece.text;
  }
  return out;
}

}  // namespace winnow::testing
