#include "server/native_generate_answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json.h"
#include "server/native_logprobs.h"
#include "server/openai_format.h"
#include "server/sse_writer.h"

namespace winnow::server {
namespace {

constexpr double kNsToS = 1e-9;

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (!out.empty()) out.push_back(',');
    out += std::to_string(id);
  }
}

void append_finish_reason(std::string& out, const ChoiceOutput& output) {
  switch (output.finish()) {
    case engine::FinishReason::kNone:
      out += "null";
      return;
    case engine::FinishReason::kStop:
      out += "{\"type\":\"stop\",\"matched\":";
      append_matched_stop(out, output);
      out.push_back('}');
      return;
    case engine::FinishReason::kLength:
      out += fmt::format("{{\"type\":\"length\",\"length\":{}}}", output.completion_tokens());
      return;
    case engine::FinishReason::kAbort:
    case engine::FinishReason::kError:
      break;
  }
  out += "{\"type\":\"abort\",\"message\":";
  json::append_string(out, output.error().message.empty() ? "Aborted" : output.error().message);
  out.push_back('}');
}

// What one sequence has to show: everything so far, or, incremental, what is new.
struct NativeItem {
  std::string text;
  std::string ids;  // "1,2,3"
  NativeLogprobList output_logprobs;
  NativeLogprobList input_logprobs;
  std::string finished_object;
};

class NativeAnswer final : public AnswerWriter {
 public:
  NativeAnswer(const Api& api, std::shared_ptr<Exchange> exchange, NativeAnswerPlan plan)
      : api_(api),
        exchange_(exchange),
        plan_(std::move(plan)),
        sse_(std::move(exchange)),
        items_(static_cast<size_t>(plan_.num_sequences)) {}

  void on_update(const SequenceState& sequence, const ChoiceDelta& delta) override {
    NativeItem& item = items_[static_cast<size_t>(sequence.idx)];
    item.text += delta.text;
    append_ids(item.ids, delta.ids);
    if (plan_.return_logprob) {
      for (const auto& logprob : delta.prompt_logprobs) {
        item.input_logprobs.append(api_.tokenizer, logprob, plan_.logprob_text);
      }
      for (const auto& logprob : delta.logprobs) {
        item.output_logprobs.append(api_.tokenizer, logprob, plan_.logprob_text);
      }
    }
    if (plan_.stream) {
      stream_item(sequence, item);
    } else if (sequence.output.finished()) {
      item.finished_object = object_of(sequence, item);
    }
  }

  void on_complete() override {
    if (plan_.stream) return sse_.done();
    std::string body = plan_.batch ? "[" : "";
    for (NativeItem& item : items_) {
      if (&item != &items_.front()) body.push_back(',');
      body += item.finished_object;
    }
    if (plan_.batch) body.push_back(']');
    exchange_->respond({.body = std::move(body)});
  }

  void on_failure(const ApiError& error) override { sse_.fail(error); }

 private:
  void stream_item(const SequenceState& sequence, NativeItem& item) {
    // Cumulative events may replace each other in a slow reader's queue, increments may not.
    sse_.event(object_of(sequence, item), plan_.incremental ? Exchange::kNoKey : sequence.idx);
    if (!plan_.incremental) return;
    item.text.clear();
    item.ids.clear();
    item.output_logprobs.clear();
    item.input_logprobs.clear();
  }

  std::string object_of(const SequenceState& sequence, const NativeItem& item) const {
    std::string out = "{\"text\":";
    json::append_string(out, item.text);
    out += ",\"output_ids\":[" + item.ids + "],\"meta_info\":";
    append_meta_info(out, sequence, item);
    if (!plan_.prompt_ids.empty()) {
      std::string ids;
      append_ids(ids, plan_.prompt_ids[static_cast<size_t>(sequence.idx)]);
      out += ",\"prompt_token_ids\":[" + ids + "]";
    }
    if (plan_.batch) out += fmt::format(",\"index\":{}", sequence.idx);
    out.push_back('}');
    return out;
  }

  void append_meta_info(std::string& out,
                        const SequenceState& sequence,
                        const NativeItem& item) const {
    const ChoiceOutput& output = sequence.output;
    out += "{\"id\":";
    json::append_string(out, sequence.rid);
    out += ",\"finish_reason\":";
    append_finish_reason(out, output);
    fmt::format_to(std::back_inserter(out),
                   ",\"prompt_tokens\":{},\"completion_tokens\":{},\"cached_tokens\":{},"
                   "\"reasoning_tokens\":0,\"num_retractions\":{},\"weight_version\":",
                   output.prompt_tokens(), output.completion_tokens(), output.cached_tokens(),
                   output.num_preemptions());
    json::append_string(out, api_.config.weight_version);
    if (plan_.return_logprob) {
      item.input_logprobs.write(out, "input", plan_.top_logprobs, plan_.requested_logprobs);
      item.output_logprobs.write(out, "output", plan_.top_logprobs, plan_.requested_logprobs);
      out += fmt::format(",\"output_token_logprobs_length\":{}", item.output_logprobs.size());
    }
    if (output.finished()) {
      const double latency_s =
          static_cast<double>(api_.clock.now_ns() - plan_.received_ns) * kNsToS;
      fmt::format_to(std::back_inserter(out),
                     ",\"e2e_latency\":{:.6f},\"response_sent_to_client_ts\":{}", latency_s,
                     unix_seconds());
    }
    out.push_back('}');
  }

  const Api& api_;
  const std::shared_ptr<Exchange> exchange_;
  const NativeAnswerPlan plan_;
  SseWriter sse_;
  std::vector<NativeItem> items_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_native_answer(const Api& api,
                                                 std::shared_ptr<Exchange> exchange,
                                                 NativeAnswerPlan plan) {
  return std::make_unique<NativeAnswer>(api, std::move(exchange), std::move(plan));
}

}  // namespace winnow::server
