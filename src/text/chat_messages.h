// OpenAI messages in the one form that templates and encoders are given. Both the server and the
// command line go through here.
//
//   role       user, system, assistant, tool, developer; upper case is lowered, `function` is
//              `tool`. `developer` becomes `system` where the format does not know it.
//   content    absent and null are "". Text parts stay a list where the format takes lists (except
//              in tool results), else they are joined by a blank. Other parts are refused; an
//              assistant's thinking parts move to reasoning_content.
//   reasoning_content   a string; `reasoning` is another name for it.
//   tool_calls[].function.arguments   a JSON object, or a string that holds one; "", null and
//              absent are {}. Anything else is refused.
//   tools      {"type": "function", "function": {"name", ...}}, else refused. [] is none at all.
// Members that are null are dropped; others pass through as they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/chat_format.h"

namespace winnow::text {

// What the format can take.
struct MessageForm {
  bool content_parts = false;   // lists of text parts as content
  bool developer_role = false;  // else `developer` becomes `system`
  bool argument_text = false;   // arguments as the string that the client sent
  bool bare_tools = false;      // tools as {"name", ...} without the wrapper around it
};

struct ChatMessages {
  json::Array messages;  // at least one object
  json::Value tools;     // null or a non-empty array
  bool has_tool_calls = false;
  bool has_parts = false;
};

Result<ChatMessages> normalized(const ChatRequest& request, const MessageForm& form);

// For continue_final_message: the text that the model is to go on with.
struct Continuation {
  std::string reasoning;
  std::string content;
};
// Takes the last message off. kInvalidArgument when it is not an assistant's.
Result<Continuation> take_continuation(ChatMessages& chat);
// Behind a prompt that has opened the assistant's turn.
void append_continuation(std::vector<PromptPiece>& pieces, const Continuation& continuation);

// Appends to the last piece where it has the same control.
void append_piece(std::vector<PromptPiece>& pieces, std::string_view text, ControlTokens control);

}  // namespace winnow::text
