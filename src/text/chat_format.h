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

// Unknown members of chat_template_kwargs reach a template as variables and are ignored by the
// built-in encoders.
struct ChatRequest {
  // OpenAI messages; text/chat_messages.h says what is checked and how they are evened out.
  json::Value messages = json::Array{};
  json::Value tools;                                  // array or null
  json::Value chat_template_kwargs = json::Object{};  // enable_thinking, thinking, ...
  // Opens an assistant turn at the end, also behind a final assistant message (which stays one:
  // SGLang makes a user message of it).
  bool add_generation_prompt = true;
  // The last message is an assistant's, and the model goes on with it: its text follows the opened
  // assistant turn. "<think>" and "</think>" in that text count as the tags they are, so a client
  // can stop inside or behind the thinking.
  bool continue_final_message = false;
  // Opt-out of fault B88's protection: control tokens count wherever they stand, so that what a
  // client writes into a message can open and close turns.
  bool parse_control_tokens = false;
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // The prompt in pieces. What came from messages, tools and chat_template_kwargs is kPlain
  // (fault B88), to the byte, however the template cut and joined it; roles are ours.
  // kInvalidArgument for what the template refuses (raise_exception, wrong types).
  virtual Result<std::vector<PromptPiece>> render(const ChatRequest& request) const = 0;
};

// architecture: config.json's architectures[0]; picks the built-in encoder where model_path holds
// neither chat_template.jinja nor a chat_template in tokenizer_config.json. nullptr where there is
// no way to format chats. Throws Error on a template that does not parse.
std::unique_ptr<ChatFormat> load_chat_format(const std::string& model_path,
                                             std::string_view architecture);

std::string joined(const std::vector<PromptPiece>& pieces);
// What is ours in a prompt, with a line break for each stretch of content: tags in it are real.
std::string control_text(const std::vector<PromptPiece>& pieces);

}  // namespace winnow::text
