#include "bench/event_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <vector>

#include "bench/completion.h"
#include "bench/http_message.h"

namespace winnow::bench {

namespace {

namespace od = simdjson::ondemand;

// simdjson reads a little beyond the end: one padded buffer a thread.
class PaddedText {
 public:
  simdjson::padded_string_view copy(std::string_view text) {
    if (bytes_.size() < text.size() + simdjson::SIMDJSON_PADDING) {
      bytes_.resize(2 * text.size() + simdjson::SIMDJSON_PADDING);
    }
    std::copy(text.begin(), text.end(), bytes_.begin());
    return simdjson::padded_string_view(bytes_.data(), text.size(), bytes_.size());
  }

 private:
  std::vector<char> bytes_;
};

// More than any answer has: figures are kept a token, so a count is not believed without a limit.
constexpr int64_t kMostTokens = INT64_C(1) << 24;

std::string too_many(int64_t tokens) {
  return fmt::format("the server counts {} tokens in one answer; at most {} are believed", tokens,
                     kMostTokens);
}

bool is_null(od::value value) { return value.type() == od::json_type::null; }

// Leaves the target alone where the value is of another type or half a surrogate pair.
void read_text(od::value value, std::string_view& target) {
  std::string_view text;
  if (value.type() == od::json_type::string && value.get_string().get(text) == simdjson::SUCCESS) {
    target = text;
  }
}

void read_count(od::value value, int64_t& target) {
  int64_t count = 0;
  if (value.type() == od::json_type::number && value.get_int64().get(count) == simdjson::SUCCESS) {
    target = count;
  }
}

}  // namespace

// Views live until the next event is parsed.
struct ParsedEvent {
  std::string_view text;
  std::string_view reasoning;
  std::string_view finish_reason;
  std::string_view abort_message;
  bool tool_delta = false;
  bool error = false;
  int64_t prompt_tokens = -1;
  int64_t completion_tokens = -1;
  int64_t cached_tokens = -1;
  double accept_length = -1;
};

namespace {

// Fields are taken as they come: one pass, whatever their order.
void read_finish_reason(od::value value, ParsedEvent& out) {
  if (value.type() != od::json_type::object) {
    read_text(value, out.finish_reason);
    return;
  }
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "type") read_text(field.value(), out.finish_reason);
    if (key == "message") read_text(field.value(), out.abort_message);
  }
}

void read_meta_info(od::value value, ParsedEvent& out) {
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "completion_tokens") read_count(field.value(), out.completion_tokens);
    if (key == "prompt_tokens") read_count(field.value(), out.prompt_tokens);
    if (key == "cached_tokens") read_count(field.value(), out.cached_tokens);
    if (key == "finish_reason") read_finish_reason(field.value(), out);
    if (key == "spec_accept_length" && !is_null(field.value())) {
      out.accept_length = field.value().get_double();
    }
  }
}

void read_usage(od::value value, ParsedEvent& out) {
  if (is_null(value)) return;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "completion_tokens") read_count(field.value(), out.completion_tokens);
    if (key == "prompt_tokens") read_count(field.value(), out.prompt_tokens);
    if (key == "prompt_tokens_details" && !is_null(field.value())) {
      for (auto detail : field.value().get_object()) {
        const std::string_view name = detail.unescaped_key();
        if (name == "cached_tokens") read_count(detail.value(), out.cached_tokens);
      }
    }
  }
}

// {"tool_calls": [{"function": {"name": n, "arguments": a}}]}: any text in it is output.
bool has_tool_text(od::value value) {
  if (value.type() != od::json_type::array) return false;
  bool any = false;
  for (auto call : value.get_array()) {
    for (auto field : call.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key != "function" || is_null(field.value())) continue;
      for (auto part : field.value().get_object()) {
        std::string_view text;
        read_text(part.value(), text);
        any = any || !text.empty();
      }
    }
  }
  return any;
}

void read_delta(od::value value, ParsedEvent& out) {
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "content") read_text(field.value(), out.text);
    if (key == "reasoning_content" || key == "reasoning") {
      if (out.reasoning.empty()) read_text(field.value(), out.reasoning);
    }
    if (key == "tool_calls") out.tool_delta = has_tool_text(field.value());
  }
}

// Of the first choice; an event without choices brings usage only.
void read_choices(od::value value, ParsedEvent& out) {
  if (value.type() != od::json_type::array) return;
  bool first = true;
  for (auto choice : value.get_array()) {
    if (!std::exchange(first, false)) break;
    for (auto field : choice.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "delta") read_delta(field.value(), out);
      if (key == "text") read_text(field.value(), out.text);
      if (key == "finish_reason") read_finish_reason(field.value(), out);
    }
  }
}

void read_event(od::document& document, ParsedEvent& out) {
  for (auto field : document.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "choices") {
      read_choices(field.value(), out);
    } else if (key == "text") {
      read_text(field.value(), out.text);
    } else if (key == "meta_info") {
      read_meta_info(field.value(), out);
    } else if (key == "usage") {
      read_usage(field.value(), out);
    } else if (key == "error") {
      out.error = !is_null(field.value());
    } else if (key == "object") {
      std::string_view object;
      read_text(field.value(), object);
      out.error = out.error || object == "error";
    }
  }
}

}  // namespace

void EventReader::on_event(std::string_view data, int64_t received_ns) {
  record_.last_event_ns = received_ns;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  thread_local od::parser parser;
  thread_local PaddedText padded;
  ParsedEvent parsed;
  try {
    od::document document = parser.iterate(padded.copy(data));
    read_event(document, parsed);
  } catch (const simdjson::simdjson_error&) {
    fail("an event that is no valid JSON: " + printable(data));
    return;
  }
  if (parsed.error) {
    fail(describe_failure(200, data));
    return;
  }
  if (parsed.completion_tokens > kMostTokens) {
    fail(too_many(parsed.completion_tokens));
    return;
  }
  take(parsed, received_ns);
}

void EventReader::take(const ParsedEvent& parsed, int64_t received_ns) {
  if (parsed.prompt_tokens >= 0) record_.served_prompt_tokens = parsed.prompt_tokens;
  if (parsed.cached_tokens >= 0) record_.cached_tokens = parsed.cached_tokens;
  if (parsed.completion_tokens >= 0) record_.completion_tokens = parsed.completion_tokens;
  if (parsed.accept_length >= 0) record_.accept_length = parsed.accept_length;
  if (!parsed.finish_reason.empty()) record_.finish_reason = parsed.finish_reason;

  const bool cumulative = options_.kind == ApiKind::kNative && !options_.incremental_text;
  const bool any_text =
      parsed.reasoning.size() + parsed.text.size() > (cumulative ? record_.text.size() : 0);
  if (cumulative) {
    record_.text = parsed.text;
  } else {
    record_.text.append(parsed.reasoning).append(parsed.text);
  }
  if (any_text && record_.first_text_ns == 0) record_.first_text_ns = received_ns;

  // New tokens by the server's count. Without one, a delta that shows something is one; and a
  // count that comes only at the end says nothing about when its tokens came.
  const bool delta = any_text || parsed.tool_delta;
  const bool counts = parsed.completion_tokens >= 0 && (num_counted_ > 0 || record_.events.empty());
  int64_t num_new = delta ? 1 : 0;
  if (counts) {
    num_new = std::max(parsed.completion_tokens - num_counted_, int64_t{0});
    num_counted_ += num_new;
  }
  if (num_new > 0) record_.events.push_back({received_ns, static_cast<int32_t>(num_new)});
  if (parsed.finish_reason == "abort") {
    fail(parsed.abort_message.empty() ? "aborted by the server"
                                      : std::string(parsed.abort_message));
  }
}

void EventReader::on_body(int status, std::string_view body, int64_t end_ns) {
  Completion completion = read_completion(status, body);
  if (!completion.ok()) {
    fail(std::move(completion.error));
    return;
  }
  if (completion.completion_tokens > kMostTokens) {
    fail(too_many(completion.completion_tokens));
    return;
  }
  record_.last_event_ns = end_ns;
  record_.served_prompt_tokens = completion.prompt_tokens;
  record_.completion_tokens = completion.completion_tokens;
  record_.cached_tokens = completion.cached_tokens;
  record_.finish_reason = completion.finish_reason;
  record_.text = completion.reasoning + completion.text;
  done_ = true;
  if (!record_.text.empty()) record_.first_text_ns = end_ns;
  if (completion.completion_tokens > 0) {
    record_.events.push_back({end_ns, static_cast<int32_t>(completion.completion_tokens)});
  }
}

void EventReader::on_stream_end() {
  if (!done_ && record_.finish_reason.empty()) {
    fail("the stream ended without [DONE] and without a finish reason");
  }
}

void EventReader::fail(std::string error) {
  if (record_.error.empty()) record_.error = std::move(error);
}

}  // namespace winnow::bench
