#include "server/openai_completions_answer.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>
#include <utility>

#include "server/sse_writer.h"

namespace winnow::server {
namespace {

// The four parallel lists of a choice's "logprobs", each as comma-separated JSON.
class LogprobLists {
 public:
  void append(const text::Tokenizer& tokenizer, const engine::TokenLogprob& logprob) {
    if (!tokens_.empty()) {
      for (std::string* list : {&offsets_, &values_, &tokens_, &tops_}) list->push_back(',');
    }
    offsets_ += "-1";
    append_logprob_value(values_, logprob.logprob);
    json::append_string(tokens_, token_text(tokenizer, logprob.id));
    append_top(tokenizer, logprob);
  }

  bool empty() const { return tokens_.empty(); }

  std::string take() {
    std::string out = fmt::format(
        "{{\"text_offset\":[{}],\"token_logprobs\":[{}],\"tokens\":[{}],\"top_logprobs\":[{}]}}",
        offsets_, values_, tokens_, tops_);
    for (std::string* list : {&offsets_, &values_, &tokens_, &tops_}) list->clear();
    return out;
  }

 private:
  // An object by token text: of two ids with one text the better stays.
  void append_top(const text::Tokenizer& tokenizer, const engine::TokenLogprob& logprob) {
    if (std::isnan(logprob.logprob)) {
      tops_ += "null";
      return;
    }
    std::unordered_set<std::string> seen;
    tops_.push_back('{');
    for (const auto& [id, value] : logprob.top) {
      std::string text = token_text(tokenizer, id);
      if (seen.count(text) > 0) continue;
      if (!seen.empty()) tops_.push_back(',');
      json::append_string(tops_, text);
      tops_.push_back(':');
      append_logprob_value(tops_, value);
      seen.insert(std::move(text));
    }
    tops_.push_back('}');
  }

  std::string offsets_;
  std::string values_;
  std::string tokens_;
  std::string tops_;
};

struct CompletionChoice {
  std::string text;       // not sent yet
  LogprobLists logprobs;  // not sent yet
  bool echoed = false;
  std::string finish_reason = "null";
  std::string matched_stop = "null";
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

class CompletionAnswer : public AnswerWriter {
 public:
  CompletionAnswer(const Api& api, std::shared_ptr<Exchange> exchange, CompletionAnswerPlan plan)
      : api_(api),
        exchange_(std::move(exchange)),
        plan_(std::move(plan)),
        choices_(static_cast<size_t>(plan_.num_prompts * plan_.choices_per_prompt)) {
    head_ = "{\"id\":";
    json::append_string(head_, plan_.id);
    head_ +=
        fmt::format(",\"object\":\"text_completion\",\"created\":{},\"model\":", unix_seconds());
    json::append_string(head_, plan_.model);
    head_ += ",\"choices\":[";
  }

 protected:
  CompletionChoice& take_in(const SequenceState& sequence, const ChoiceDelta& delta) {
    CompletionChoice& choice = choices_[static_cast<size_t>(sequence.idx)];
    if (!std::exchange(choice.echoed, true) && !plan_.echo.empty()) {
      choice.text += plan_.echo[static_cast<size_t>(sequence.idx / plan_.choices_per_prompt)];
    }
    choice.text += delta.text;
    if (plan_.logprobs) {
      for (const auto* list : {&delta.prompt_logprobs, &delta.logprobs}) {
        for (const engine::TokenLogprob& logprob : *list) {
          choice.logprobs.append(api_.tokenizer, logprob);
        }
      }
    }
    choice.prompt_tokens = sequence.output.prompt_tokens();
    choice.cached_tokens = sequence.output.cached_tokens();
    choice.completion_tokens = sequence.output.completion_tokens();
    if (sequence.output.finished()) {
      choice.finish_reason = finish_reason_json(sequence.output.finish());
      choice.matched_stop.clear();
      append_matched_stop(choice.matched_stop, sequence.output);
    }
    return choice;
  }

  Usage usage() const {
    Usage total;
    for (size_t i = 0; i < choices_.size(); ++i) {
      total.completion_tokens += choices_[i].completion_tokens;
      if (i % static_cast<size_t>(plan_.choices_per_prompt) != 0) continue;
      total.prompt_tokens += choices_[i].prompt_tokens;
      total.cached_tokens += choices_[i].cached_tokens;
    }
    return total;
  }

  void append_choice(std::string& out, size_t idx) {
    CompletionChoice& choice = choices_[idx];
    out += fmt::format("{{\"index\":{},\"text\":", idx);
    json::append_string(out, choice.text);
    choice.text.clear();
    out += ",\"logprobs\":";
    out += plan_.logprobs ? choice.logprobs.take() : "null";
    out += ",\"finish_reason\":" + choice.finish_reason;
    out += ",\"matched_stop\":" + choice.matched_stop + "}";
  }

  const Api& api_;
  const std::shared_ptr<Exchange> exchange_;
  const CompletionAnswerPlan plan_;
  std::vector<CompletionChoice> choices_;
  std::string head_;  // of the object, up to the choices
};

class CompletionWholeAnswer final : public CompletionAnswer {
 public:
  using CompletionAnswer::CompletionAnswer;

  void on_update(const SequenceState& sequence, const ChoiceDelta& delta) override {
    take_in(sequence, delta);
  }

  void on_complete() override {
    std::string body = std::move(head_);
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
};

class CompletionStreamAnswer final : public CompletionAnswer {
 public:
  CompletionStreamAnswer(const Api& api,
                         std::shared_ptr<Exchange> exchange,
                         CompletionAnswerPlan plan)
      : CompletionAnswer(api, exchange, std::move(plan)), sse_(std::move(exchange)) {}

  // The finish reason rides on the last text event.
  void on_update(const SequenceState& sequence, const ChoiceDelta& delta) override {
    const CompletionChoice& choice = take_in(sequence, delta);
    if (choice.text.empty() && !sequence.output.finished()) return;
    std::string event = head_;
    append_choice(event, static_cast<size_t>(sequence.idx));
    event.push_back(']');
    if (plan_.streaming.continuous_usage) {
      event += ",\"usage\":";
      append_usage(event, usage(), api_.config.enable_cache_report);
    }
    event.push_back('}');
    sse_.event(event);
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
  SseWriter sse_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_answer(const Api& api,
                                                     std::shared_ptr<Exchange> exchange,
                                                     CompletionAnswerPlan plan) {
  if (plan.streaming.stream) {
    return std::make_unique<CompletionStreamAnswer>(api, std::move(exchange), std::move(plan));
  }
  return std::make_unique<CompletionWholeAnswer>(api, std::move(exchange), std::move(plan));
}

}  // namespace winnow::server
