// The part of a chat request that decides the prompt. Messages and tools themselves are checked by
// text's normalized(), which the command line uses as well.
#include <algorithm>
#include <string_view>

#include "server/limits.h"
#include "server/openai_chat_request.h"

namespace winnow::server {
namespace {

void read_tool_choice(ObjectReader& reader, text::ChatRequest& chat) {
  const json::Value* choice = reader.find("tool_choice");
  if (choice == nullptr) return;
  if (!choice->is_string() && !choice->is_object()) {
    return reader.fail("tool_choice",
                       fmt::format("must be a string or an object, got {}", choice->kind_name()));
  }
  const std::string word = choice->is_string() ? choice->as_string() : "required";
  if (word == "none") {
    chat.tools = nullptr;
  } else if (word == "required") {
    reader.fail("tool_choice", chat.tools.is_null()
                                   ? "needs tools"
                                   : "other than \"auto\" and \"none\" is not supported yet");
  } else if (word != "auto") {
    reader.fail("tool_choice", "must be \"auto\", \"none\", \"required\" or an object");
  }
}

struct Effort {
  const json::Value* value = nullptr;  // nullptr: not given
  std::optional<bool> enabled;
};

// reasoning_effort, or reasoning {effort, enabled}.
Effort read_effort(ObjectReader& reader) {
  Effort effort{.value = reader.find("reasoning_effort"), .enabled = {}};
  if (const json::Value* reasoning = reader.find("reasoning")) {
    ObjectReader inner(*reasoning, "reasoning");
    for (const char* key : {"effort", "reasoning_effort"}) {
      const json::Value* given = inner.find(key);
      if (effort.value == nullptr) effort.value = given;
    }
    for (const char* key : {"enabled", "enable"}) {
      if (inner.find(key) != nullptr) effort.enabled = inner.boolean(key, true);
    }
    if (!inner.ok()) reader.fail(inner.status());
  }
  if (effort.value == nullptr) return effort;
  constexpr std::string_view kWords[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};
  const json::Value& value = *effort.value;
  const bool word = value.is_string() && std::find(std::begin(kWords), std::end(kWords),
                                                   value.as_string()) != std::end(kWords);
  const bool share = value.is_number() && value.as_number() >= 0 && value.as_number() <= 0.99;
  if (!word && !share) {
    reader.fail("reasoning_effort",
                "must be none, minimal, low, medium, high, xhigh, max or a number in [0, 0.99]");
  }
  if (!effort.enabled) effort.enabled = !(word && value.as_string() == "none");
  return effort;
}

// "none" turns thinking off, every other effort on, unless chat_template_kwargs says so itself.
// Templates spell the switch in two ways.
void apply_effort(const Effort& effort, json::Value& kwargs) {
  auto set_default = [&](std::string_view key, json::Value value) {
    if (kwargs.find(key) == nullptr) kwargs.set(key, std::move(value));
  };
  if (!effort.enabled) return;
  set_default("thinking", *effort.enabled);
  set_default("enable_thinking", *effort.enabled);
  if (effort.value != nullptr && *effort.enabled) set_default("reasoning_effort", *effort.value);
}

}  // namespace

text::ChatRequest read_chat_prompt(ObjectReader& reader) {
  text::ChatRequest chat;
  if (const json::Array* messages = reader.array("messages", kMaxMessages)) {
    chat.messages = *messages;
  }
  if (const json::Array* tools = reader.array("tools", kMaxTools)) {
    if (!tools->empty()) chat.tools = *tools;
  }
  read_tool_choice(reader, chat);
  chat.continue_final_message = reader.boolean("continue_final_message", false);
  chat.parse_control_tokens = reader.boolean("parse_control_tokens", false);
  if (const json::Object* kwargs = reader.object("chat_template_kwargs")) {
    chat.chat_template_kwargs = *kwargs;
  }
  apply_effort(read_effort(reader), chat.chat_template_kwargs);
  return chat;
}

}  // namespace winnow::server
