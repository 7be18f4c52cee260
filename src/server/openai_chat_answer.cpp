#include "server/openai_chat_answer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "server/reasoning_split.h"
#include "server/sse_writer.h"
#include "server/tool_call_split.h"

namespace winnow::server {
namespace {

ReasoningSplit make_split(const Api& api, const ChatAnswerPlan& plan) {
  if (plan.reasoning_parser.empty()) return {};
  const text::ReasoningStart start{.prompt = plan.prompt,
                                   .chat_template_kwargs = &plan.chat_template_kwargs};
  return {api.tokenizer, plan.reasoning_parser, start, !plan.stream_reasoning};
}

ToolCallSplit make_tool_split(const ChatAnswerPlan& plan) {
  if (plan.tool_call_parser.empty()) return {};
  return {plan.tool_call_parser, plan.tools, plan.parallel_tool_calls};
}

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  out.push_back('[');
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out.push_back(',');
    out += std::to_string(ids[i]);
  }
  out.push_back(']');
}

// What a step adds to a choice.
struct ChatDelta {
  std::string reasoning;
  std::string content;
  std::vector<text::ToolCallDelta> calls;
};

// What both kinds of answer keep of one choice.
struct ChatChoice {
  ReasoningSplit split;
  ToolCallSplit tools;
  std::string logprob_items;         // comma-separated objects, not sent yet
  std::vector<int32_t> pending_ids;  // not sent yet; only with return_token_ids
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

class ChatAnswer : public AnswerWriter {
 public:
  ChatAnswer(const Api& api, std::shared_ptr<Exchange> exchange, ChatAnswerPlan plan)
      : api_(api), exchange_(std::move(exchange)), plan_(std::move(plan)) {
    for (int32_t i = 0; i < plan_.num_choices; ++i) {
      choices_.push_back({.split = make_split(api_, plan_),
                          .tools = make_tool_split(plan_),
                          .logprob_items = {},
                          .pending_ids = {}});
    }
  }

 protected:
  ChatChoice& choice_of(const SequenceState& sequence) {
    return choices_[static_cast<size_t>(sequence.idx)];
  }

  ChatDelta take_in(const SequenceState& sequence, const ChoiceDelta& delta) {
    ChatChoice& choice = choice_of(sequence);
    choice.prompt_tokens = sequence.output.prompt_tokens();
    choice.cached_tokens = sequence.output.cached_tokens();
    choice.completion_tokens = sequence.output.completion_tokens();
    if (plan_.logprobs) {
      for (const engine::TokenLogprob& logprob : delta.logprobs) {
        if (!choice.logprob_items.empty()) choice.logprob_items.push_back(',');
        append_chat_logprob(choice.logprob_items, api_.tokenizer, logprob);
      }
    }
    if (plan_.return_token_ids) {
      choice.pending_ids.insert(choice.pending_ids.end(), delta.ids.begin(), delta.ids.end());
    }
    const bool finished = sequence.output.finished();
    text::ReasoningDelta split = choice.split.append(delta.text, delta.ids, finished);
    text::ToolCallDeltas deltas = choice.tools.append(std::move(split.content), finished);
    return {.reasoning = std::move(split.reasoning),
            .content = std::move(deltas.content),
            .calls = std::move(deltas.calls)};
  }

  // A stop behind calls is for their sake, whatever token or string it was.
  bool ends_in_calls(const SequenceState& sequence) {
    return choice_of(sequence).tools.any_call() &&
           sequence.output.finish() == engine::FinishReason::kStop;
  }
  std::string_view finish_reason(const SequenceState& sequence) {
    return ends_in_calls(sequence) ? "\"tool_calls\""
                                   : finish_reason_json(sequence.output.finish());
  }
  std::string matched_stop(const SequenceState& sequence) {
    if (ends_in_calls(sequence)) return "null";
    std::string matched;
    append_matched_stop(matched, sequence.output);
    return matched;
  }

  Usage usage() const {
    Usage total{.prompt_tokens = choices_.front().prompt_tokens,
                .cached_tokens = choices_.front().cached_tokens};
    for (const ChatChoice& choice : choices_) {
      total.prompt_tokens = std::max(total.prompt_tokens, choice.prompt_tokens);
      total.completion_tokens += choice.completion_tokens;
      total.reasoning_tokens += choice.split.reasoning_tokens();
    }
    return total;
  }

  // {"content":[...]} of what has not been sent, or null.
  std::string take_logprobs(ChatChoice& choice) const {
    if (!plan_.logprobs || choice.logprob_items.empty()) return "null";
    return "{\"content\":[" + std::exchange(choice.logprob_items, {}) + "]}";
  }

  const Api& api_;
  const std::shared_ptr<Exchange> exchange_;
  const ChatAnswerPlan plan_;
  std::vector<ChatChoice> choices_;
};

class ChatWholeAnswer final : public ChatAnswer {
 public:
  ChatWholeAnswer(const Api& api, std::shared_ptr<Exchange> exchange, ChatAnswerPlan plan)
      : ChatAnswer(api, std::move(exchange), std::move(plan)), texts_(choices_.size()) {}

  void on_update(const SequenceState& sequence, const ChoiceDelta& delta) override {
    Text& text = texts_[static_cast<size_t>(sequence.idx)];
    ChatDelta added = take_in(sequence, delta);
    text.content += added.content;
    text.reasoning += added.reasoning;
    for (text::ToolCallDelta& call : added.calls) {
      if (static_cast<size_t>(call.idx) == text.calls.size()) {
        text.calls.push_back(std::move(call));
      } else {
        text.calls.back().arguments += call.arguments;
      }
    }
    if (!sequence.output.finished()) return;
    if (plan_.force_nonempty_content && text.content.empty() && text.calls.empty()) {
      text.content.swap(text.reasoning);
    }
    text.finish_reason = finish_reason(sequence);
    text.matched_stop = matched_stop(sequence);
  }

  void on_complete() override {
    std::string body = "{\"id\":";
    json::append_string(body, plan_.id);
    body +=
        fmt::format(",\"object\":\"chat.completion\",\"created\":{},\"model\":", unix_seconds());
    json::append_string(body, plan_.model);
    body += ",\"choices\":[";
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (i > 0) body.push_back(',');
      append_choice(body, i);
    }
    body += "],\"usage\":";
    append_usage(body, usage(), api_.config.enable_cache_report);
    body += ",\"metadata\":{\"weight_version\":";
    json::append_string(body, api_.config.weight_version);
    body += "}}";
    exchange_->respond({.body = std::move(body)});
  }

  void on_failure(const ApiError& error) override { exchange_->respond(error_response(error)); }

 private:
  struct Text {
    std::string content;
    std::string reasoning;
    std::vector<text::ToolCallDelta> calls;  // whole
    std::string_view finish_reason;
    std::string matched_stop;
  };

  void append_choice(std::string& body, size_t idx) {
    const Text& text = texts_[idx];
    body += fmt::format("{{\"index\":{},\"message\":{{\"role\":\"assistant\",\"content\":", idx);
    json::append_string(body, text.content);
    body += ",\"reasoning_content\":";
    if (text.reasoning.empty()) {
      body += "null";
    } else {
      json::append_string(body, text.reasoning);
    }
    body += ",\"tool_calls\":";
    append_calls(body, idx);
    body += "},\"logprobs\":" + take_logprobs(choices_[idx]);
    body += ",\"finish_reason\":";
    body += text.finish_reason;
    body += ",\"matched_stop\":" + text.matched_stop;
    if (plan_.return_token_ids) {
      body += ",\"token_ids\":";
      append_ids(body, choices_[idx].pending_ids);
    }
    body.push_back('}');
  }

  void append_calls(std::string& body, size_t idx) const {
    const std::vector<text::ToolCallDelta>& calls = texts_[idx].calls;
    if (calls.empty()) {
      body += "null";
      return;
    }
    for (const text::ToolCallDelta& call : calls) {
      body += call.idx == 0 ? "[{\"id\":" : ",{\"id\":";
      json::append_string(body, tool_call_id(plan_.id, static_cast<int32_t>(idx), call.idx));
      body += ",\"type\":\"function\",\"function\":{\"name\":";
      json::append_string(body, call.name);
      body += ",\"arguments\":";
      json::append_string(body, call.arguments);
      body += "}}";
    }
    body.push_back(']');
  }

  std::vector<Text> texts_;
};

class ChatStreamAnswer final : public ChatAnswer {
 public:
  ChatStreamAnswer(const Api& api, std::shared_ptr<Exchange> exchange, ChatAnswerPlan plan)
      : ChatAnswer(api, exchange, std::move(plan)),
        sse_(std::move(exchange)),
        greeted_(choices_.size()) {
    head_ = "{\"id\":";
    json::append_string(head_, plan_.id);
    head_ += fmt::format(",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":",
                         unix_seconds());
    json::append_string(head_, plan_.model);
    head_ += ",\"choices\":[";
  }

  void on_update(const SequenceState& sequence, const ChoiceDelta& delta) override {
    const ChatDelta added = take_in(sequence, delta);
    greet(sequence.idx);
    if (!added.reasoning.empty()) send_text(sequence.idx, "reasoning_content", added.reasoning);
    if (!added.content.empty()) send_text(sequence.idx, "content", added.content);
    for (const text::ToolCallDelta& call : added.calls) send_call(sequence.idx, call);
    if (!sequence.output.finished()) return;
    const ChatChoice& choice = choice_of(sequence);
    if (!choice.logprob_items.empty() || !choice.pending_ids.empty()) {
      send(sequence.idx, "{}", "null", "null");
    }
    send(sequence.idx, "{}", finish_reason(sequence), matched_stop(sequence));
  }

  void on_complete() override {
    if (plan_.streaming.include_usage) {
      std::string event = head_ + "],\"usage\":";
      append_usage(event, usage(), api_.config.enable_cache_report);
      event.push_back('}');
      sse_.event(event);
    }
    sse_.done();
  }

  void on_failure(const ApiError& error) override { sse_.fail(error); }

 private:
  // Every choice has its role before any text comes.
  void greet(int32_t idx) {
    if (greeted_[static_cast<size_t>(idx)]) return;
    greeted_[static_cast<size_t>(idx)] = true;
    std::string event = head_;
    event += fmt::format(
        "{{\"index\":{},\"delta\":{{\"role\":\"assistant\",\"content\":\"\","
        "\"reasoning_content\":null}},\"logprobs\":null,\"finish_reason\":null,"
        "\"matched_stop\":null}}]}}",
        idx);
    sse_.event(event);
  }

  void send_text(int32_t idx, std::string_view key, std::string_view text) {
    std::string delta = key == "content" ? "{\"reasoning_content\":null,\"content\":"
                                         : "{\"content\":null,\"reasoning_content\":";
    json::append_string(delta, text);
    delta.push_back('}');
    send(idx, delta, "null", "null");
  }

  // The id and the name go alone, in a call's first chunk.
  void send_call(int32_t idx, const text::ToolCallDelta& call) {
    if (!call.name.empty()) {
      std::string head = "\"id\":";
      json::append_string(head, tool_call_id(plan_.id, idx, call.idx));
      head += ",\"type\":\"function\",\"function\":{\"name\":";
      json::append_string(head, call.name);
      send_call_part(idx, call.idx, head + ",\"arguments\":\"\"}");
    }
    if (!call.arguments.empty()) {
      std::string part =
          "\"id\":null,\"type\":\"function\",\"function\":{\"name\":null,\"arguments\":";
      json::append_string(part, call.arguments);
      send_call_part(idx, call.idx, part + "}");
    }
  }

  void send_call_part(int32_t idx, int32_t call_idx, const std::string& part) {
    send(idx,
         fmt::format("{{\"content\":null,\"reasoning_content\":null,\"tool_calls\":[{{"
                     "\"index\":{},{}}}]}}",
                     call_idx, part),
         "null", "null");
  }

  void send(int32_t idx,
            std::string_view delta,
            std::string_view finish_reason,
            std::string_view matched_stop) {
    ChatChoice& choice = choices_[static_cast<size_t>(idx)];
    std::string event = head_;
    event += fmt::format(
        "{{\"index\":{},\"delta\":{},\"logprobs\":{},\"finish_reason\":{},"
        "\"matched_stop\":{}",
        idx, delta, take_logprobs(choice), finish_reason, matched_stop);
    if (!choice.pending_ids.empty()) {
      event += ",\"token_ids\":";
      append_ids(event, std::exchange(choice.pending_ids, {}));
    }
    event += "}]";
    if (plan_.streaming.continuous_usage) {
      event += ",\"usage\":";
      append_usage(event, usage(), api_.config.enable_cache_report);
    }
    event.push_back('}');
    sse_.event(event);
  }

  SseWriter sse_;
  std::string head_;  // of every chunk, up to the choices
  std::vector<bool> greeted_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_answer(const Api& api,
                                               std::shared_ptr<Exchange> exchange,
                                               ChatAnswerPlan plan) {
  if (plan.streaming.stream) {
    return std::make_unique<ChatStreamAnswer>(api, std::move(exchange), std::move(plan));
  }
  return std::make_unique<ChatWholeAnswer>(api, std::move(exchange), std::move(plan));
}

}  // namespace winnow::server
