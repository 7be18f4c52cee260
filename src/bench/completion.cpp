#include "bench/completion.h"

#include "bench/http_message.h"

namespace winnow::bench {

namespace {

const json::Value kNull;

const json::Value& get(const json::Value& value, std::string_view key) {
  const json::Value* found = value.find(key);
  return found == nullptr ? kNull : *found;
}

const json::Value& first(const json::Value& value) {
  return value.is_array() && !value.as_array().empty() ? value.as_array().front() : kNull;
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? value.as_string() : std::string();
}

int64_t count_of(const json::Value& value) { return value.is_integer() ? value.as_integer() : -1; }

void read_native(const json::Value& item, Completion& out) {
  out.text = text_of(get(item, "text"));
  const json::Value& meta = get(item, "meta_info");
  const json::Value& reason = get(meta, "finish_reason");
  out.finish_reason = reason.is_object() ? text_of(get(reason, "type")) : text_of(reason);
  if (out.finish_reason == "abort") {
    const std::string message = text_of(get(reason, "message"));
    out.error = message.empty() ? "aborted by the server" : message;
  }
  out.prompt_tokens = count_of(get(meta, "prompt_tokens"));
  out.completion_tokens = count_of(get(meta, "completion_tokens"));
  out.cached_tokens = count_of(get(meta, "cached_tokens"));
  if (get(meta, "e2e_latency").is_number()) {
    out.server_seconds = get(meta, "e2e_latency").as_number();
  }
}

void read_openai(const json::Value& body, Completion& out) {
  const json::Value& choice = first(get(body, "choices"));
  const json::Value& message = get(choice, "message");
  out.text = text_of(
      get(message.is_object() ? message : choice, message.is_object() ? "content" : "text"));
  out.reasoning = text_of(get(message, "reasoning_content"));
  if (out.reasoning.empty()) out.reasoning = text_of(get(message, "reasoning"));
  out.finish_reason = text_of(get(choice, "finish_reason"));
  const json::Value& usage = get(body, "usage");
  out.prompt_tokens = count_of(get(usage, "prompt_tokens"));
  out.completion_tokens = count_of(get(usage, "completion_tokens"));
  out.cached_tokens = count_of(get(get(usage, "prompt_tokens_details"), "cached_tokens"));
  out.reasoning_tokens = count_of(get(usage, "reasoning_tokens"));
  if (out.reasoning_tokens < 0) {
    out.reasoning_tokens =
        count_of(get(get(usage, "completion_tokens_details"), "reasoning_tokens"));
  }
  if (choice.is_null()) out.error = "an answer without choices";
  if (out.finish_reason == "abort") out.error = "aborted by the server";
}

}  // namespace

Completion read_completion(int status, std::string_view body) {
  Completion out;
  out.status = status;
  auto parsed = json::parse(body, {.max_depth = 512, .reject_duplicate_keys = false});
  if (status != 200 || !parsed.ok()) {
    out.error = describe_failure(status, body);
    if (status == 200) out.error = "the answer is no JSON: " + out.error;
    return out;
  }
  out.body = std::move(parsed.value());
  const json::Value& item = out.body.is_array() ? first(out.body) : out.body;
  if (!get(item, "error").is_null() || text_of(get(item, "object")) == "error") {
    out.error = describe_failure(status, body);
  } else if (item.find("choices") != nullptr) {
    read_openai(item, out);
  } else if (item.find("meta_info") != nullptr) {
    read_native(item, out);
  } else {
    out.error = "the answer has neither choices nor meta_info: " + describe_failure(status, body);
  }
  return out;
}

}  // namespace winnow::bench
