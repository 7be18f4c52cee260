#include "server/openai_format.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/json.h"
#include "server/protocol_reader.h"

namespace winnow::server {
namespace {

// "token":...,"logprob":...,"bytes":[...]
void append_token_members(std::string& out,
                          const text::Tokenizer& tokenizer,
                          int32_t id,
                          float logprob) {
  out += "\"token\":";
  json::append_string(out, token_text(tokenizer, id));
  out += ",\"logprob\":";
  append_logprob_value(out, logprob);
  out += ",\"bytes\":[";
  bool first = true;
  for (const char c : tokenizer.token_bytes(id)) {
    if (!first) out.push_back(',');
    first = false;
    out += std::to_string(static_cast<unsigned char>(c));
  }
  out.push_back(']');
}

}  // namespace

void append_usage(std::string& out, const Usage& usage, bool cache_report) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},"
                 "\"reasoning_tokens\":{},\"prompt_tokens_details\":",
                 usage.prompt_tokens, usage.completion_tokens,
                 usage.prompt_tokens + usage.completion_tokens, usage.reasoning_tokens);
  if (cache_report && usage.cached_tokens > 0) {
    fmt::format_to(std::back_inserter(out), "{{\"cached_tokens\":{}}}}}", usage.cached_tokens);
  } else {
    out += "null}";
  }
}

std::string_view finish_reason_json(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kStop:
      return "\"stop\"";
    case engine::FinishReason::kLength:
      return "\"length\"";
    case engine::FinishReason::kAbort:
    case engine::FinishReason::kError:
      return "\"abort\"";
    case engine::FinishReason::kNone:
      break;
  }
  return "null";
}

void append_matched_stop(std::string& out, const ChoiceOutput& output) {
  if (output.matched_string()) {
    json::append_string(out, *output.matched_string());
  } else if (output.matched_id()) {
    out += std::to_string(*output.matched_id());
  } else {
    out += "null";
  }
}

std::string token_text(const text::Tokenizer& tokenizer, int32_t id) {
  return tokenizer.decode({&id, 1}, false);
}

void append_logprob_value(std::string& out, float logprob) {
  if (std::isnan(logprob)) {
    out += "null";
  } else {
    // -inf is no JSON number; clients take this one for "impossible".
    json::append_double(out, std::isinf(logprob) ? -9999.0 : static_cast<double>(logprob));
  }
}

void append_chat_logprob(std::string& out,
                         const text::Tokenizer& tokenizer,
                         const engine::TokenLogprob& logprob) {
  out.push_back('{');
  append_token_members(out, tokenizer, logprob.id, logprob.logprob);
  out += ",\"top_logprobs\":[";
  bool first = true;
  for (const auto& [id, value] : logprob.top) {
    if (!first) out.push_back(',');
    first = false;
    out.push_back('{');
    append_token_members(out, tokenizer, id, value);
    out.push_back('}');
  }
  out += "]}";
}

StreamOptions read_stream_options(ObjectReader& reader, bool include_usage_by_default) {
  StreamOptions options;
  options.stream = reader.boolean("stream", false);
  options.include_usage = include_usage_by_default;
  const json::Value* value = reader.find("stream_options");
  if (value == nullptr) return options;
  ObjectReader inner(*value, "stream_options");
  options.include_usage = inner.boolean("include_usage", include_usage_by_default);
  options.continuous_usage = inner.boolean("continuous_usage_stats", false);
  if (!inner.ok()) reader.fail(inner.status());
  return options;
}

}  // namespace winnow::server
