// POST /tokenize, /detokenize
#include "server/endpoints.h"
#include "server/limits.h"
#include "server/openai_chat_request.h"
#include "server/protocol_reader.h"

namespace winnow::server {
namespace {

// Written straight away: as JSON values the ids of a long text would take ten times the memory.
struct Tokenized {
  std::string tokens;  // [1,2] or [[1],[2]]
  json::Value count;
};

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  out.push_back('[');
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out.push_back(',');
    out += std::to_string(ids[i]);
  }
  out.push_back(']');
}

Tokenized tokenized(const std::vector<int32_t>& ids) {
  Tokenized out{.tokens = {}, .count = static_cast<int64_t>(ids.size())};
  append_ids(out.tokens, ids);
  return out;
}

Result<Tokenized> tokenize_prompt(const Api& api, ObjectReader& reader, const json::Value& prompt) {
  if (prompt.is_string()) {
    return tokenized(api.tokenizer.encode(prompt.as_string(), text::ControlTokens::kParse));
  }
  std::string tokens = "[";
  json::Array counts;
  for (const std::string& text : reader.strings("prompt", kMaxPrompts, INT64_MAX)) {
    const auto ids = api.tokenizer.encode(text, text::ControlTokens::kParse);
    if (!counts.empty()) tokens.push_back(',');
    append_ids(tokens, ids);
    counts.emplace_back(static_cast<int64_t>(ids.size()));
  }
  if (!reader.ok()) return reader.status();
  return Tokenized{.tokens = tokens + ']', .count = std::move(counts)};
}

Result<Tokenized> tokenize_messages(const Api& api, ObjectReader& reader) {
  const text::ChatRequest chat = read_chat_prompt(reader);
  if (!reader.ok()) return reader.status();
  if (chat.messages.as_array().empty()) {
    return invalid_argument("messages", "messages must not be empty");
  }
  if (api.chat_format == nullptr) {
    return invalid_argument("messages", "this checkpoint has no chat template");
  }
  const auto pieces = api.chat_format->render(chat);
  if (!pieces.ok()) return pieces.status();
  return tokenized(api.tokenizer.encode(pieces.value()));
}

Result<Tokenized> tokenize_body(const Api& api, const json::Value& body) {
  ObjectReader reader(body);
  reader.boolean("add_special_tokens", true);
  const json::Value* prompt = reader.find("prompt");
  const bool has_messages = reader.find("messages") != nullptr;
  if (reader.ok() && (prompt != nullptr) == has_messages) {
    reader.fail("prompt", "or messages must be given, and not both");
  }
  if (!reader.ok()) return reader.status();
  return prompt != nullptr ? tokenize_prompt(api, reader, *prompt) : tokenize_messages(api, reader);
}

}  // namespace

void tokenize(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kMustBeJson);
  if (!body) return;
  const Result<Tokenized> answer = tokenize_body(api, *body);
  if (!answer.ok()) return refuse(api, *call.exchange, answer.status());
  call.exchange->respond(
      {.body =
           fmt::format(R"({{"tokens":{},"count":{},"max_model_len":{}}})", answer.value().tokens,
                       json::dump(answer.value().count), api.context_length())});
}

void detokenize(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kMustBeJson);
  if (!body) return;
  ObjectReader reader(*body);
  const bool skip_special = reader.boolean("skip_special_tokens", true);
  const json::Value* tokens = reader.find("tokens");
  if (reader.ok() && tokens == nullptr) reader.fail("tokens", "is required");
  if (!reader.ok()) return refuse(api, *call.exchange, reader.status());
  json::Value text;
  const bool nested =
      tokens->is_array() && !tokens->as_array().empty() && tokens->as_array().front().is_array();
  if (!nested) {
    text = api.tokenizer.decode(reader.ids("tokens", kMaxDetokenizedIds, api.config.vocab_size),
                                skip_special);
  } else {
    json::Array texts;
    const auto lists = reader.id_lists("tokens", INT64_MAX, api.config.vocab_size);
    size_t num_ids = 0;
    for (const auto& ids : lists) num_ids += ids.size();
    if (num_ids > static_cast<size_t>(kMaxDetokenizedIds)) {
      reader.fail("tokens", fmt::format("must be at most {} ids together, got {}",
                                        kMaxDetokenizedIds, num_ids));
    }
    for (size_t i = 0; i < lists.size() && reader.ok(); ++i) {
      texts.emplace_back(api.tokenizer.decode(lists[i], skip_special));
    }
    text = std::move(texts);
  }
  if (!reader.ok()) return refuse(api, *call.exchange, reader.status());
  call.exchange->respond({.body = json::dump(json::Object{{"text", std::move(text)}})});
}

}  // namespace winnow::server
