// POST /tokenize, /detokenize
#include "server/endpoints.h"
#include "server/limits.h"
#include "server/openai_chat_request.h"
#include "server/protocol_reader.h"

namespace winnow::server {
namespace {

json::Array to_json(const std::vector<int32_t>& ids) {
  json::Array out;
  out.reserve(ids.size());
  for (const int32_t id : ids) out.emplace_back(int64_t{id});
  return out;
}

Result<json::Object> tokenize_prompt(const Api& api,
                                     ObjectReader& reader,
                                     const json::Value& prompt) {
  if (prompt.is_string()) {
    const auto ids = api.tokenizer.encode(prompt.as_string(), text::ControlTokens::kParse);
    return json::Object{{"tokens", to_json(ids)}, {"count", static_cast<int64_t>(ids.size())}};
  }
  json::Array tokens;
  json::Array counts;
  for (const std::string& text : reader.strings("prompt", kMaxPrompts, INT64_MAX)) {
    const auto ids = api.tokenizer.encode(text, text::ControlTokens::kParse);
    tokens.emplace_back(to_json(ids));
    counts.emplace_back(static_cast<int64_t>(ids.size()));
  }
  if (!reader.ok()) return reader.status();
  return json::Object{{"tokens", std::move(tokens)}, {"count", std::move(counts)}};
}

Result<json::Object> tokenize_messages(const Api& api, ObjectReader& reader) {
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
  const auto ids = api.tokenizer.encode(pieces.value());
  return json::Object{{"tokens", to_json(ids)}, {"count", static_cast<int64_t>(ids.size())}};
}

Result<json::Object> tokenize_body(const Api& api, const json::Value& body) {
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
  Result<json::Object> answer = tokenize_body(api, *body);
  if (!answer.ok()) return refuse(api, *call.exchange, answer.status());
  answer.value().emplace_back("max_model_len", api.context_length());
  call.exchange->respond({.body = json::dump(std::move(answer.value()))});
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
