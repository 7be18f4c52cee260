#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace winnow::server {

class Generation::Sink final : public engine::TokenSink {
 public:
  Sink(std::shared_ptr<Generation> generation, int32_t sequence_idx)
      : generation_(std::move(generation)), sequence_idx_(sequence_idx) {}

  void on_event(engine::TokenEvent event) override {
    generation_->deliver(sequence_idx_, std::move(event));
  }

 private:
  const std::shared_ptr<Generation> generation_;
  const int32_t sequence_idx_;
};

Generation::Generation(Api& api,
                       std::shared_ptr<Exchange> exchange,
                       std::string rid,
                       int64_t received_ns,
                       bool streaming)
    : api_(api),
      exchange_(std::move(exchange)),
      rid_(std::move(rid)),
      received_ns_(received_ns),
      streaming_(streaming) {}

Generation::~Generation() {
  if (registered_) api_.live.remove(rid_);
}

Status Generation::start(std::vector<SequencePlan> plans, std::unique_ptr<AnswerWriter> writer) {
  registered_ = api_.live.add(rid_, weak_from_this());
  if (!registered_) return invalid_argument("rid", "rid \"{}\" is in use by a live request", rid_);
  writer_ = std::move(writer);
  sequences_.reserve(plans.size());
  for (SequencePlan& plan : plans) {
    sequences_.push_back({.idx = static_cast<int32_t>(sequences_.size()),
                          .rid = plan.request.rid,
                          .output = {api_.tokenizer, std::move(plan.output)}});
    live_rids_.push_back(plan.request.rid);
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    auto sink = std::make_shared<Sink>(shared_from_this(), static_cast<int32_t>(i));
    Status status = api_.engine.submit(std::move(plans[i].request), std::move(sink));
    if (status.ok()) continue;
    for (size_t k = 0; k < i; ++k) api_.engine.cancel(sequences_[k].rid);
    return status;
  }
  api_.metrics.on_start(streaming_, static_cast<int64_t>(plans.size()));
  // From here on a client that leaves, or has left, cancels what was submitted.
  exchange_->on_gone([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->cancel();
  });
  std::unique_lock lock(mutex_);
  started_ = true;
  if (inbox_.empty() || std::exchange(output_scheduled_, true)) return {};
  lock.unlock();
  schedule_output();
  return {};
}

void Generation::cancel() {
  std::vector<std::string> rids;
  {
    std::lock_guard lock(mutex_);
    rids = live_rids_;
  }
  for (const std::string& rid : rids) api_.engine.cancel(rid);
}

void Generation::deliver(int32_t sequence_idx, engine::TokenEvent event) {
  std::unique_lock lock(mutex_);
  if (event.finish != engine::FinishReason::kNone) {
    std::erase(live_rids_, sequences_[static_cast<size_t>(sequence_idx)].rid);
  }
  inbox_.push_back({sequence_idx, std::move(event), api_.clock.now_ns()});
  if (!started_ || std::exchange(output_scheduled_, true)) return;
  lock.unlock();
  schedule_output();
}

void Generation::schedule_output() {
  const bool queued =
      api_.output_workers.try_run([self = shared_from_this()] { self->write_output(); });
  if (!queued) log::error("request {}: the output queue is full, its answer is lost", rid_);
}

void Generation::write_output() {
  for (;;) {
    std::vector<Incoming> batch;
    {
      std::lock_guard lock(mutex_);
      batch.swap(inbox_);
      if (batch.empty()) {
        output_scheduled_ = false;
        return;
      }
    }
    for (Incoming& incoming : batch) {
      if (over_) break;
      try {
        write_one(std::move(incoming));
      } catch (const std::exception& e) {
        log::error("request {}: {}", rid_, e.what());
        fail({StatusCode::kInternal, std::string("Internal server error: ") + e.what(), ""});
      }
    }
  }
}

void Generation::write_one(Incoming incoming) {
  SequenceState& sequence = sequences_[static_cast<size_t>(incoming.sequence_idx)];
  if (sequence.output.finished()) return;  // by a stop string, the engine's last words follow
  const ChoiceDelta delta = sequence.output.append(std::move(incoming.event));
  observe(sequence, delta, incoming.arrived_ns);
  const bool finished = sequence.output.finished();
  if (finished && sequence.output.hit_stop_string()) api_.engine.finish(sequence.rid);
  if (sequence.output.finish() == engine::FinishReason::kError) {
    return fail(sequence.output.error());
  }
  writer_->on_update(sequence, delta);
  if (finished && ++num_finished_ == sequences_.size()) complete();
}

void Generation::observe(SequenceState& sequence, const ChoiceDelta& delta, int64_t arrived_ns) {
  if (delta.ids.empty()) return;
  const auto num_tokens = static_cast<int64_t>(delta.ids.size());
  if (sequence.first_token_ns == 0) {
    sequence.first_token_ns = arrived_ns;
    api_.metrics.on_first_token(arrived_ns - received_ns_);
  } else {
    api_.metrics.on_tokens_gap(arrived_ns - sequence.last_token_ns, num_tokens);
  }
  sequence.last_token_ns = arrived_ns;
  api_.metrics.on_generated(num_tokens);
}

void Generation::complete() {
  over_ = true;
  const int64_t latency_ns = api_.clock.now_ns() - received_ns_;
  for (const SequenceState& sequence : sequences_) {
    api_.metrics.on_finish(sequence.output, latency_ns);
  }
  writer_->on_complete();
}

void Generation::fail(const Status& status) {
  over_ = true;
  cancel();  // the other sequences
  api_.metrics.on_failure(static_cast<int64_t>(sequences_.size()));
  ApiError error = api_error(status);
  // It was accepted and broke while it ran: whatever the reason, the fault is here.
  error.http_status = 500;
  writer_->on_failure(error);
}

}  // namespace winnow::server
