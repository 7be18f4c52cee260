// Messages to a prompt. A checkpoint's own Jinja template, or a built-in encoder where the family
// ships none (DeepSeek-V3.2). Thread-safe after construction.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace winnow::text {

struct ChatRequest {
  // OpenAI messages, checked by the server: an array of objects with role and content.
  json::Value messages = json::Array{};
  json::Value tools;                 // array or null
  json::Value chat_template_kwargs = json::Object{};  // enable_thinking, thinking, ...
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the last assistant message is left open
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // The prompt in pieces, content that came from messages marked as plain (fault B88).
  // kInvalidArgument for what the template refuses (raise_exception, wrong types).
  virtual Result<std::vector<PromptPiece>> render(const ChatRequest& request) const = 0;
};

// architecture: config.json's architectures[0]; picks the built-in encoder where model_path holds
// neither chat_template.jinja nor a chat_template in tokenizer_config.json. nullptr where there is
// no way to format chats. Throws Error on a template that does not parse.
std::unique_ptr<ChatFormat> load_chat_format(const std::string& model_path,
                                             std::string_view architecture);

std::string joined(const std::vector<PromptPiece>& pieces);

}  // namespace winnow::text
