#include "text/chat_messages.h"

#include <algorithm>

#include "text/tool_schema.h"

namespace winnow::text {

namespace {

std::string lowered(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return text;
}

// Parts are copied for each form that a template may want.
constexpr size_t kMaxContentParts = 10000;

class Normalizer {
 public:
  Normalizer(const MessageForm& form, ChatMessages& out) : form_(form), out_(out) {}

  Status message(const json::Value& message, size_t index) {
    where_ = fmt::format("messages[{}]", index);
    if (!message.is_object()) {
      return invalid_argument(where_, "{} must be an object, not {}", where_, message.kind_name());
    }
    json::Value result = json::Object{};
    if (Status s = role(message, result); !s.ok()) return s;
    if (Status s = content(message, result); !s.ok()) return s;
    for (const char* field : {"name", "tool_call_id"}) {
      const json::Value* given = message.find(field);
      if (given && !given->is_null() && !given->is_string()) return bad(field, "must be a string");
    }
    for (const auto& [name, value] : message.as_object()) {
      if (value.is_null() || result.find(name) || name == "reasoning" || name == "tool_calls") {
        continue;
      }
      result.set(name, value);
    }
    if (Status s = reasoning(message, result); !s.ok()) return s;
    if (Status s = tool_calls(message, result); !s.ok()) return s;
    out_.messages.push_back(std::move(result));
    return {};
  }

  Status tools(const json::Value& tools) {
    if (tools.is_null()) return {};
    if (!tools.is_array()) {
      return invalid_argument("tools", "tools must be an array, not {}", tools.kind_name());
    }
    json::Array list;
    for (size_t i = 0; i < tools.as_array().size(); ++i) {
      const json::Value& tool = tools.as_array()[i];
      const json::Value* type = tool.find("type");
      const json::Value* function = tool.find("function");
      const json::Value* name = function ? function->find("name") : nullptr;
      const bool typed = !type || (type->is_string() && type->as_string() == "function");
      if (!typed || !name || !name->is_string() || name->as_string().empty()) {
        return invalid_argument(
            fmt::format("tools[{}]", i),
            "tools[{}] must be {{\"type\": \"function\", \"function\": {{\"name\": ...}}}}", i);
      }
      const json::Value* parameters = function->find("parameters");
      const json::Value* description = function->find("description");
      if (parameters && !parameters->is_null()) {
        const std::string field = fmt::format("tools[{}].function.parameters", i);
        if (Status s = check_tool_schema(*parameters, field); !s.ok()) return s;
      }
      if (description && !description->is_null() && !description->is_string()) {
        const std::string field = fmt::format("tools[{}].function.description", i);
        return invalid_argument(field, "{} must be a string, not {}", field,
                                description->kind_name());
      }
      list.push_back(form_.bare_tools ? *function : tool);
    }
    if (!list.empty()) out_.tools = std::move(list);
    return {};
  }

 private:
  Status bad(std::string_view field, std::string_view what) const {
    const std::string name = fmt::format("{}.{}", where_, field);
    return invalid_argument(name, "{} {}", name, what);
  }

  Status role(const json::Value& message, json::Value& result) {
    const json::Value* given = message.find("role");
    if (!given || !given->is_string()) return bad("role", "must be a string");
    role_ = lowered(given->as_string());
    if (role_ == "function") role_ = "tool";
    static constexpr std::string_view kRoles[] = {"user", "system", "assistant", "tool",
                                                  "developer"};
    if (std::find(std::begin(kRoles), std::end(kRoles), role_) == std::end(kRoles)) {
      return bad("role", "must be one of user, system, assistant, tool, developer");
    }
    if (role_ == "developer" && !form_.developer_role) role_ = "system";
    result.set("role", role_);
    return {};
  }

  Status content(const json::Value& message, json::Value& result) {
    thinking_.clear();
    const json::Value* given = message.find("content");
    if (!given || given->is_null()) {
      result.set("content", "");
      return {};
    }
    if (given->is_string()) {
      result.set("content", *given);
      return {};
    }
    if (!given->is_array()) {
      return bad("content",
                 fmt::format("must be a string or a list of parts, not {}", given->kind_name()));
    }
    if (given->as_array().size() > kMaxContentParts) {
      return bad("content", fmt::format("must have at most {} parts, got {}", kMaxContentParts,
                                        given->as_array().size()));
    }
    out_.has_parts = true;
    json::Array parts;
    for (const json::Value& part : given->as_array()) {
      if (Status s = content_part(part, parts); !s.ok()) return s;
    }
    if (form_.content_parts && role_ != "tool") {
      result.set("content", std::move(parts));
      return {};
    }
    std::string text;
    for (const json::Value& part : parts) {
      if (&part != &parts.front()) text.push_back(' ');
      text += part.find("text")->as_string();
    }
    result.set("content", std::move(text));
    return {};
  }

  Status content_part(const json::Value& part, json::Array& parts) {
    if (part.is_string()) {
      parts.push_back(json::Object{{"type", "text"}, {"text", part}});
      return {};
    }
    const json::Value* type = part.find("type");
    if (!type || !type->is_string()) return bad("content", "has a part without a type");
    const std::string& name = type->as_string();
    const json::Value* text = part.find("text");
    if ((name == "thinking" || name == "reasoning") && role_ == "assistant") {
      if (const json::Value* thought = part.find("thinking")) text = thought;
      if (!text || !text->is_string()) return bad("content", "has a thinking part without text");
      thinking_ += text->as_string();
      return {};
    }
    if (name != "text") {
      return bad("content", fmt::format("has a part of type \"{}\"; only text is supported", name));
    }
    if (!text || !text->is_string()) return bad("content", "has a text part without text");
    parts.push_back(json::Object{{"type", "text"}, {"text", *text}});
    return {};
  }

  Status reasoning(const json::Value& message, json::Value& result) {
    const char* used = "reasoning_content";
    const json::Value* given = message.find(used);
    if (!given || given->is_null()) {
      used = "reasoning";
      given = message.find(used);
    }
    if (given && !given->is_null()) {
      if (!given->is_string()) return bad(used, "must be a string");
      result.set("reasoning_content", *given);
    } else if (!thinking_.empty()) {
      result.set("reasoning_content", thinking_);
    }
    return {};
  }

  Status tool_calls(const json::Value& message, json::Value& result) {
    const json::Value* given = message.find("tool_calls");
    if (!given || given->is_null()) return {};
    if (!given->is_array()) return bad("tool_calls", "must be an array");
    if (given->as_array().empty()) return {};
    if (role_ != "assistant") return bad("tool_calls", "belong to assistant messages");
    json::Array calls = given->as_array();
    for (size_t i = 0; i < calls.size(); ++i) {
      if (Status s = tool_call(calls[i], i); !s.ok()) return s;
    }
    out_.has_tool_calls = true;
    result.set("tool_calls", std::move(calls));
    return {};
  }

  Status tool_call(json::Value& call, size_t index) {
    const std::string field = fmt::format("tool_calls[{}].function", index);
    json::Value* function = call.find("function");
    const json::Value* name = function ? function->find("name") : nullptr;
    if (!name || !name->is_string() || name->as_string().empty()) {
      return bad(field, "must be an object with a name");
    }
    const json::Value* id = call.find("id");
    if (id && !id->is_null() && !id->is_string()) {
      return bad(fmt::format("tool_calls[{}].id", index), "must be a string");
    }
    const json::Value* given = function->find("arguments");
    json::Value arguments = json::Object{};
    std::string text = "{}";
    if (given && given->is_object()) {
      arguments = *given;
      text = json::dump(arguments, json::Style::kPython);
    } else if (given && given->is_string()) {
      if (given->as_string().find_first_not_of(" \t\r\n") != std::string::npos) {
        auto parsed = json::parse(given->as_string());
        if (!parsed.ok()) {
          return bad(field + ".arguments",
                     "must be a string that holds a JSON object: " + parsed.status().message);
        }
        if (!parsed.value().is_object()) {
          return bad(field + ".arguments", "must be a string that holds a JSON object");
        }
        arguments = std::move(parsed.value());
        text = given->as_string();
      }
    } else if (given && !given->is_null()) {
      return bad(field + ".arguments", "must be a string that holds a JSON object");
    }
    function->set("arguments", form_.argument_text ? json::Value(text) : std::move(arguments));
    return {};
  }

  const MessageForm& form_;
  ChatMessages& out_;
  std::string where_;
  std::string role_;
  std::string thinking_;
};

bool ends_with(const std::vector<PromptPiece>& pieces, std::string_view tag) {
  if (pieces.empty() || pieces.back().control != ControlTokens::kParse) return false;
  std::string_view text = pieces.back().text;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text.ends_with(tag);
}

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

// Content, but with the think tags as tags.
void append_own_words(std::vector<PromptPiece>& pieces, std::string_view text) {
  while (!text.empty()) {
    const size_t open = text.find(kOpen);
    const size_t close = text.find(kClose);
    const size_t tag = std::min(open, close);
    append_piece(pieces, text.substr(0, tag), ControlTokens::kPlain);
    if (tag == std::string_view::npos) return;
    const size_t length = tag == open ? kOpen.size() : kClose.size();
    append_piece(pieces, text.substr(tag, length), ControlTokens::kParse);
    text.remove_prefix(tag + length);
  }
}

}  // namespace

Result<ChatMessages> normalized(const ChatRequest& request, const MessageForm& form) {
  ChatMessages out;
  Normalizer normalizer(form, out);
  if (!request.messages.is_array() || request.messages.as_array().empty()) {
    return invalid_argument("messages", "messages must be a list with at least one message");
  }
  const json::Array& messages = request.messages.as_array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (Status s = normalizer.message(messages[i], i); !s.ok()) return s;
  }
  if (Status s = normalizer.tools(request.tools); !s.ok()) return s;
  if (!request.chat_template_kwargs.is_object() && !request.chat_template_kwargs.is_null()) {
    return invalid_argument("chat_template_kwargs", "chat_template_kwargs must be an object");
  }
  for (const char* taken : {"messages", "tools", "add_generation_prompt"}) {
    if (request.chat_template_kwargs.find(taken) == nullptr) continue;
    const std::string field = fmt::format("chat_template_kwargs.{}", taken);
    return invalid_argument(field, "{} is set by the rest of the request", field);
  }
  return out;
}

Result<Continuation> take_continuation(ChatMessages& chat) {
  const json::Value& last = chat.messages.back();
  if (last.find("role")->as_string() != "assistant") {
    return invalid_argument("continue_final_message",
                            "continue_final_message needs a final assistant message");
  }
  if (last.find("tool_calls")) {
    return invalid_argument("continue_final_message",
                            "a message with tool calls cannot be continued");
  }
  Continuation continuation;
  if (const json::Value* reasoning = last.find("reasoning_content")) {
    continuation.reasoning = reasoning->as_string();
  }
  const json::Value& content = *last.find("content");
  if (content.is_string()) {
    continuation.content = content.as_string();
  } else {
    for (const json::Value& part : content.as_array()) {
      continuation.content += part.find("text")->as_string();
    }
  }
  chat.messages.pop_back();
  return continuation;
}

void append_continuation(std::vector<PromptPiece>& pieces, const Continuation& continuation) {
  const bool open = ends_with(pieces, kOpen);
  const bool closed = ends_with(pieces, kClose);
  std::string_view content = continuation.content;
  if (!continuation.reasoning.empty() && !closed) {
    if (!open) append_piece(pieces, kOpen, ControlTokens::kParse);
    append_piece(pieces, continuation.reasoning, ControlTokens::kPlain);
    if (content.empty()) return;
    append_piece(pieces, kClose, ControlTokens::kParse);
  } else if (open && content.starts_with(kOpen)) {
    content.remove_prefix(kOpen.size());
  } else if (closed && content.starts_with(kClose)) {
    content.remove_prefix(kClose.size());
  }
  append_own_words(pieces, content);
}

void append_piece(std::vector<PromptPiece>& pieces, std::string_view text, ControlTokens control) {
  if (text.empty()) return;
  if (pieces.empty() || pieces.back().control != control) {
    pieces.push_back({std::string(text), control});
  } else {
    pieces.back().text += text;
  }
}

}  // namespace winnow::text
