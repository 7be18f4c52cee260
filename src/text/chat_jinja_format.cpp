#include "text/chat_jinja_format.h"

#include <ctime>
#include <optional>

#include "text/chat_messages.h"
#include "text/jinja_template.h"

namespace winnow::text {

namespace {

using jinja::TemplateError;

jinja::Template parse(const std::string& source, std::string_view name) {
  try {
    return jinja::Template(source);
  } catch (const TemplateError& error) {
    throw_error("{}, line {}: {}", name, error.line, error.what());
  }
}

struct Parsed {
  Parsed(const std::string& source, std::string_view name)
      : program(parse(source, name)),
        takes_parts(program.loops_over("content")),
        knows_developer(source.find("developer") != std::string::npos) {}

  jinja::Template program;
  bool takes_parts;
  bool knows_developer;
};

// A message with its content marked. The role is one of our own words, so that a template may
// build a control token from it.
jinja::Value message_value(const json::Value& message) {
  std::vector<std::pair<jinja::Value, jinja::Value>> items;
  for (const auto& [name, value] : message.as_object()) {
    items.emplace_back(jinja::Value::text(name, true), jinja::from_json(value, name != "role"));
  }
  return jinja::make_dict(std::move(items), true);
}

jinja::Variables variables_of(const ChatMessages& chat,
                              const ChatRequest& request,
                              const ChatTemplate& chat_template) {
  std::vector<jinja::Value> messages;
  for (const json::Value& message : chat.messages) messages.push_back(message_value(message));
  jinja::Variables variables;
  for (const auto& [name, token] : chat_template.special_tokens) {
    variables.emplace_back(name, jinja::Value::text(token));
  }
  variables.emplace_back("documents", jinja::None{});
  if (request.chat_template_kwargs.is_object()) {
    for (const auto& [name, value] : request.chat_template_kwargs.as_object()) {
      variables.emplace_back(name, jinja::from_json(value, true));
    }
  }
  variables.emplace_back("messages",
                         jinja::make_list(std::move(messages), jinja::List::Kind::kList, true));
  variables.emplace_back("tools", jinja::from_json(chat.tools, true));
  variables.emplace_back("add_generation_prompt", jinja::Value(request.add_generation_prompt ||
                                                               request.continue_final_message));
  return variables;
}

std::vector<PromptPiece> pieces_of(const jinja::MarkedText& text) {
  std::vector<PromptPiece> pieces;
  const std::string_view bytes = text.str();
  size_t at = 0;
  for (const auto& run : text.plain_runs()) {
    append_piece(pieces, bytes.substr(at, run.begin - at), ControlTokens::kParse);
    append_piece(pieces, bytes.substr(run.begin, run.end - run.begin), ControlTokens::kPlain);
    at = run.end;
  }
  append_piece(pieces, bytes.substr(at), ControlTokens::kParse);
  return pieces;
}

class JinjaFormat final : public ChatFormat {
 public:
  JinjaFormat(const ChatTemplate& chat_template, std::string_view name)
      : chat_template_(chat_template), parsed_(chat_template.source, name) {
    if (!chat_template.tool_source.empty()) tool_parsed_.emplace(chat_template.tool_source, name);
  }

  // Templates differ in the form they want some things in, and fail on the other: arguments as
  // an object or as text, tools with or without their wrapper, content as parts or as one text.
  // The forms are tried in a fixed order; the first that renders is taken.
  Result<std::vector<PromptPiece>> render(const ChatRequest& request) const override {
    const bool with_tools = request.tools.is_array() && !request.tools.as_array().empty();
    const Parsed& parsed = with_tools && tool_parsed_ ? *tool_parsed_ : parsed_;
    std::optional<Status> first_failure;
    for (unsigned form_bits = 0; form_bits < 8; ++form_bits) {
      MessageForm form;
      form.bare_tools = form_bits & 1;
      form.argument_text = form_bits & 2;
      form.content_parts = parsed.takes_parts && !(form_bits & 4);
      form.developer_role = parsed.knows_developer;
      auto chat = normalized(request, form);
      if (!chat.ok()) return chat.status();
      const bool new_form = (!form.bare_tools || !chat.value().tools.is_null()) &&
                            (!form.argument_text || chat.value().has_tool_calls) &&
                            (!(form_bits & 4) || (parsed.takes_parts && chat.value().has_parts));
      if (!new_form) continue;
      try {
        return render_form(parsed, std::move(chat.value()), request);
      } catch (const TemplateError& error) {
        if (!first_failure) first_failure = refusal(error);
        if (error.kind != TemplateError::Kind::kType) break;
      }
    }
    return *first_failure;
  }

 private:
  static Status refusal(const TemplateError& error) {
    if (error.kind == TemplateError::Kind::kRaised) {
      return invalid_argument("messages", "the chat template refuses this: {}", error.what());
    }
    // Line 0: the values were too much before the first statement ran.
    const std::string where = error.line > 0 ? fmt::format(" in line {}", error.line) : "";
    return invalid_argument("messages", "the chat template fails{}: {}", where, error.what());
  }

  Result<std::vector<PromptPiece>> render_form(const Parsed& parsed,
                                               ChatMessages chat,
                                               const ChatRequest& request) const {
    Continuation continuation;
    if (request.continue_final_message) {
      auto taken = take_continuation(chat);
      if (!taken.ok()) return taken.status();
      continuation = std::move(taken.value());
    }
    const jinja::MarkedText text =
        parsed.program.render(variables_of(chat, request, chat_template_), std::time(nullptr));
    std::vector<PromptPiece> pieces = pieces_of(text);
    append_continuation(pieces, continuation);
    if (request.parse_control_tokens) {
      return std::vector<PromptPiece>{{joined(pieces), ControlTokens::kParse}};
    }
    return pieces;
  }

  ChatTemplate chat_template_;
  Parsed parsed_;
  std::optional<Parsed> tool_parsed_;
};

}  // namespace

std::unique_ptr<ChatFormat> make_jinja_format(const ChatTemplate& chat_template,
                                              std::string_view name) {
  return std::make_unique<JinjaFormat>(chat_template, name);
}

}  // namespace winnow::text
