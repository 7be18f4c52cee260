#include "text/deepseek_v32_chat.h"

#include <algorithm>
#include <optional>

#include "text/chat_messages.h"

namespace winnow::text {

namespace {

constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";

// The wording that the model was trained with, blank lines included.
constexpr std::string_view kToolsHead = R"(## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
)";
constexpr std::string_view kToolsTail = "\n</functions>\n";
constexpr std::string_view kResponseFormat =
    "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

bool is_role(const json::Value& message, std::string_view role) {
  return message.find("role")->as_string() == role;
}

bool opens_turn(const json::Value& message) {
  return is_role(message, "user") || is_role(message, "developer");
}

const std::string& content_of(const json::Value& message) {
  return message.find("content")->as_string();
}

size_t num_calls(const json::Value& message) {
  const json::Value* calls = message.find("tool_calls");
  return calls ? calls->as_array().size() : 0;
}

class Encoder {
 public:
  Encoder(const json::Array& messages, bool thinking)
      : messages_(messages), thinking_(thinking), last_user_(last_user(messages)) {}

  // -1 where nobody has spoken.
  static ptrdiff_t last_user(const json::Array& messages) {
    for (size_t i = messages.size(); i-- > 0;) {
      if (opens_turn(messages[i])) return static_cast<ptrdiff_t>(i);
    }
    return -1;
  }

  Status run(bool open_turn) {
    ours(kBos);
    for (size_t i = 0; i < messages_.size(); ++i) {
      const bool last = i + 1 == messages_.size();
      if (Status s = message(i, !last || open_turn); !s.ok()) return s;
    }
    const bool opened =
        !messages_.empty() && (opens_turn(messages_.back()) || is_role(messages_.back(), "tool"));
    if (open_turn && !opened) {
      ours(kAssistant);
      think_tag(thinking_);
    }
    return {};
  }

  std::vector<PromptPiece> take() { return std::move(pieces_); }

 private:
  void ours(std::string_view text) { append_piece(pieces_, text, ControlTokens::kParse); }
  void theirs(std::string_view text) { append_piece(pieces_, text, ControlTokens::kPlain); }
  void think_tag(bool open) { ours(open ? kThink : kEndThink); }

  Status message(size_t i, bool open_turn) {
    const json::Value& message = messages_[i];
    if (is_role(message, "system")) {
      theirs(content_of(message));
      return attachments(message, i);
    }
    if (opens_turn(message)) return user(message, i, open_turn);
    if (is_role(message, "tool")) return tool_result(message, i);
    return assistant(message, i);
  }

  // Tools and response format of a system or developer message.
  Status attachments(const json::Value& message, size_t i) {
    const json::Value* tools = message.find("tools");
    if (tools && tools->is_array() && !tools->as_array().empty()) {
      ours("\n\n");
      ours(kToolsHead);
      for (const json::Value& tool : tools->as_array()) {
        const json::Value* function = tool.find("function");
        if (!function) {
          return invalid_argument(fmt::format("messages[{}].tools", i),
                                  "messages[{}].tools must be objects with a function", i);
        }
        if (&tool != &tools->as_array().front()) ours("\n");
        theirs(json::dump(*function, json::Style::kPython));
      }
      ours(kToolsTail);
    }
    if (const json::Value* schema = message.find("response_format")) {
      ours(kResponseFormat);
      theirs(json::dump(*schema, json::Style::kPython));
    }
    return {};
  }

  Status user(const json::Value& message, size_t i, bool open_turn) {
    ours(kUser);
    if (is_role(message, "developer")) {
      if (content_of(message).empty()) {
        return invalid_argument(fmt::format("messages[{}].content", i),
                                "messages[{}]: a developer message needs content", i);
      }
      if (Status s = attachments(message, i); !s.ok()) return s;
      ours("\n\n# The user's message is: ");
    }
    theirs(content_of(message));
    if (open_turn) {
      ours(kAssistant);
      think_tag(thinking_ && static_cast<ptrdiff_t>(i) == last_user_);
    }
    return {};
  }

  Status tool_result(const json::Value& message, size_t i) {
    size_t before = i;
    while (before > 0 && is_role(messages_[before - 1], "tool")) --before;
    const size_t calls = before > 0 ? num_calls(messages_[before - 1]) : 0;
    const size_t order = i - before + 1;
    if (order > calls) {
      return invalid_argument(fmt::format("messages[{}]", i),
                              "messages[{}]: a tool result without a call before it", i);
    }
    if (order == 1) ours("\n\n<function_results>");
    ours("\n<result>");
    theirs(content_of(message));
    ours("</result>");
    if (order == calls) {
      ours("\n</function_results>\n\n");
      think_tag(thinking_ && static_cast<ptrdiff_t>(i) >= last_user_);
      return {};
    }
    if (i + 1 == messages_.size() || !is_role(messages_[i + 1], "tool")) {
      return invalid_argument(fmt::format("messages[{}]", i),
                              "messages[{}]: {} of {} tool calls have a result", i, order, calls);
    }
    return {};
  }

  Status assistant(const json::Value& message, size_t i) {
    const json::Value* reasoning = message.find("reasoning_content");
    const bool reasoned = reasoning && !reasoning->as_string().empty();
    if (thinking_ && static_cast<ptrdiff_t>(i) > last_user_) {
      if (!reasoned && num_calls(message) == 0) {
        return invalid_argument(fmt::format("messages[{}].reasoning_content", i),
                                "messages[{}]: while thinking, an assistant message behind the "
                                "last user message needs reasoning_content or tool calls",
                                i);
      }
      if (reasoned) theirs(reasoning->as_string());
      ours(kEndThink);
    }
    theirs(content_of(message));
    if (const json::Value* calls = message.find("tool_calls")) tool_calls(*calls);
    const json::Value* prefix = message.find("prefix");
    if (!prefix || !prefix->is_bool() || !prefix->as_bool()) ours(kEos);
    return {};
  }

  void tool_calls(const json::Value& calls) {
    ours("\n\n<｜DSML｜function_calls>\n");
    for (const json::Value& call : calls.as_array()) {
      const json::Value& function = *call.find("function");
      ours("<｜DSML｜invoke name=\"");
      theirs(function.find("name")->as_string());
      ours("\">\n");
      for (const auto& member : function.find("arguments")->as_object()) {
        if (&member != &function.find("arguments")->as_object().front()) ours("\n");
        parameter(member.first, member.second);
      }
      ours("\n</｜DSML｜invoke>\n");
    }
    ours("</｜DSML｜function_calls>");
  }

  void parameter(const std::string& name, const json::Value& value) {
    ours("<｜DSML｜parameter name=\"");
    theirs(name);
    ours(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
    theirs(value.is_string() ? value.as_string() : json::dump(value, json::Style::kPython));
    ours("</｜DSML｜parameter>");
  }

  const json::Array& messages_;
  bool thinking_;
  ptrdiff_t last_user_;
  std::vector<PromptPiece> pieces_;
};

void drop_thinking(json::Array& messages) {
  const ptrdiff_t last = Encoder::last_user(messages);
  json::Array kept;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (static_cast<ptrdiff_t>(i) < last && is_role(messages[i], "developer")) continue;
    kept.push_back(std::move(messages[i]));
  }
  messages = std::move(kept);  // reasoning in front of the last user message is never written
}

bool flag(const json::Value& kwargs, std::string_view name, bool otherwise) {
  const json::Value* value = kwargs.find(name);
  return value && value->is_bool() ? value->as_bool() : otherwise;
}

// "false" or 0 would else count as not given.
Status check_flags(const json::Value& kwargs) {
  for (const char* name : {"thinking", "enable_thinking", "drop_thinking"}) {
    const json::Value* value = kwargs.find(name);
    if (!value || value->is_null() || value->is_bool()) continue;
    const std::string field = fmt::format("chat_template_kwargs.{}", name);
    return invalid_argument(field, "{} must be true or false, not {}", field, value->kind_name());
  }
  return {};
}

class DeepseekV32Format final : public ChatFormat {
 public:
  Result<std::vector<PromptPiece>> render(const ChatRequest& request) const override {
    MessageForm form;
    form.developer_role = true;
    auto chat = normalized(request, form);
    if (!chat.ok()) return chat.status();
    if (Status s = check_flags(request.chat_template_kwargs); !s.ok()) return s;
    Continuation continuation;
    if (request.continue_final_message) {
      auto taken = take_continuation(chat.value());
      if (!taken.ok()) return taken.status();
      continuation = std::move(taken.value());
    }
    json::Array& messages = chat.value().messages;
    if (!chat.value().tools.is_null()) {
      if (messages.empty() || !is_role(messages.front(), "system")) {
        messages.insert(messages.begin(), json::Object{{"role", "system"}, {"content", ""}});
      }
      messages.front().set("tools", chat.value().tools);
    }
    const json::Value& kwargs = request.chat_template_kwargs;
    const bool thinking = flag(kwargs, "thinking", flag(kwargs, "enable_thinking", false));
    if (thinking && flag(kwargs, "drop_thinking", true)) drop_thinking(messages);
    Encoder encoder(messages, thinking);
    const bool open_turn = request.add_generation_prompt || request.continue_final_message;
    if (Status s = encoder.run(open_turn); !s.ok()) return s;
    std::vector<PromptPiece> pieces = encoder.take();
    append_continuation(pieces, continuation);
    if (request.parse_control_tokens) {
      return std::vector<PromptPiece>{{joined(pieces), ControlTokens::kParse}};
    }
    return pieces;
  }
};

}  // namespace

std::unique_ptr<ChatFormat> make_deepseek_v32_format() {
  return std::make_unique<DeepseekV32Format>();
}

}  // namespace winnow::text
