#include "engine/engine_core.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/trace.h"
#include "engine/philox.h"

namespace winnow::engine {
namespace {

// An idle pass: long enough to cost nothing, short enough that a watcher of the heartbeat sees it.
constexpr auto kIdlePass = std::chrono::milliseconds(50);
constexpr int64_t kRateWindowNs = 1'000'000'000;

Status unavailable(std::string message) {
  return {StatusCode::kUnavailable, std::move(message), ""};
}

// Requests without a seed differ from each other, also when they ask the same.
uint64_t seed_of_request(uint64_t engine_seed, uint64_t id) {
  const auto bits =
      philox4x32({static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32), 0, 1},
                 {static_cast<uint32_t>(engine_seed), static_cast<uint32_t>(engine_seed >> 32)});
  return (uint64_t{bits[1]} << 32) | bits[0];
}

}  // namespace

void EngineCore::Inbox::clear() {
  submitted.clear();
  ends.clear();
  flushes.clear();
  end_all = false;
}

EngineCore::EngineCore(const EngineOptions& options,
                       std::unique_ptr<Executor> executor,
                       const Clock& clock)
    : options_(options),
      executor_(std::move(executor)),
      clock_(clock),
      scheduler_(options, {executor_->eos_ids().begin(), executor_->eos_ids().end()}),
      results_(static_cast<size_t>(options.max_running_requests)),
      rate_start_ns_(clock.now_ns()) {
  publish_stats();
  thread_ = std::thread([this] { run_thread(); });
}

EngineCore::~EngineCore() { stop(0); }

Status EngineCore::submit(GenerateRequest request, std::shared_ptr<TokenSink> sink) {
  if (Status fits = Scheduler::check_fits(options_, request); !fits.ok()) return fits;
  auto sequence = std::make_unique<Sequence>();
  sequence->request = std::move(request);
  sequence->sink = std::move(sink);
  const std::string& rid = sequence->request.rid;
  {
    std::lock_guard lock(inbox_mutex_);
    if (dead_) return unavailable("the engine has failed");
    if (stopping_) return unavailable("the server is shutting down");
    if (live_.find(rid) != live_.end()) {
      return invalid_argument("rid", "a request with rid '{}' is running", rid);
    }
    if (num_queued_ >= options_.max_queued_requests) {
      return unavailable(fmt::format("{} requests are queued, the most allowed", num_queued_));
    }
    ++num_queued_;
    sequence->id = ++next_id_;
    if (auto& seed = sequence->request.sampling.seed; !seed) {
      seed = seed_of_request(options_.seed, sequence->id);
    }
    live_.emplace(rid, LiveRequest{sequence->id});
    inbox_.submitted.push_back(std::move(sequence));
  }
  inbox_ready_.notify_one();
  return {};
}

void EngineCore::end(std::string_view rid, FinishReason reason) {
  {
    std::lock_guard lock(inbox_mutex_);
    const auto it = live_.find(rid);
    if (it == live_.end() || it->second.is_ending) return;
    it->second.is_ending = true;
    inbox_.ends.push_back({it->second.id, reason});
  }
  inbox_ready_.notify_one();
}

void EngineCore::end_all() {
  {
    std::lock_guard lock(inbox_mutex_);
    inbox_.end_all = true;
  }
  inbox_ready_.notify_one();
}

void EngineCore::flush_cache(int64_t wait_ns, std::function<void(const Status&)> done) {
  std::unique_lock lock(inbox_mutex_);
  if (dead_ || stopping_) {
    lock.unlock();
    return done(unavailable("the engine is not running"));
  }
  inbox_.flushes.push_back({clock_.now_ns() + wait_ns, std::move(done)});
  lock.unlock();
  inbox_ready_.notify_one();
}

EngineStats EngineCore::stats() const {
  std::lock_guard lock(stats_mutex_);
  return stats_;
}

void EngineCore::stop(int64_t drain_ns) {
  {
    std::lock_guard lock(inbox_mutex_);
    const int64_t until =
        clock_.now_ns() + std::min(drain_ns, std::numeric_limits<int64_t>::max() - clock_.now_ns());
    drain_until_ns_ = stopping_ ? std::min(drain_until_ns_, until) : until;
    stopping_ = true;
  }
  inbox_ready_.notify_one();
  std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void EngineCore::run_thread() {
  try {
    while (take_messages()) {
      handle_messages();
      if (scheduler_.has_work()) step();
      ++counters_.steps;
      publish_stats();
    }
  } catch (const std::exception& e) {
    die(e.what());
  }
}

bool EngineCore::take_messages() {
  std::unique_lock lock(inbox_mutex_);
  if (!scheduler_.has_work()) {
    inbox_ready_.wait_for(lock, kIdlePass, [&] { return stopping_ || !inbox_.empty(); });
  }
  std::swap(taken_, inbox_);
  if (!stopping_) return true;
  const bool is_idle = !scheduler_.has_work() && taken_.submitted.empty();
  if (!is_idle && clock_.now_ns() < drain_until_ns_) return true;
  lock.unlock();
  taken_.end_all = true;
  handle_messages();
  publish_stats();
  return false;
}

void EngineCore::handle_messages() {
  for (auto& sequence : taken_.submitted) {
    counters_.prompt_tokens += sequence->num_prompt();
    scheduler_.add(std::move(sequence));
  }
  const Status cancelled{StatusCode::kCancelled, "the request was cancelled", ""};
  for (const EndMessage& message : taken_.ends) {
    scheduler_.end(message.id, message.reason,
                   message.reason == FinishReason::kStop ? Status{} : cancelled);
  }
  if (taken_.end_all) scheduler_.end_all(FinishReason::kAbort, cancelled);
  deliver();
  for (auto& flush : taken_.flushes) flushes_.push_back(std::move(flush));
  flush_where_idle();
  taken_.clear();
}

void EngineCore::flush_where_idle() {
  if (flushes_.empty()) return;
  const bool flushed = scheduler_.flush_cache();
  const int64_t now_ns = clock_.now_ns();
  std::erase_if(flushes_, [&](FlushMessage& flush) {
    if (!flushed && now_ns < flush.until_ns) return false;
    flush.done(flushed ? Status{} : unavailable("requests are running or queued"));
    return true;
  });
}

void EngineCore::step() {
  const trace::Span span("step", counters_.steps);
  const StepPlan& plan = plan_step();
  const auto results = std::span(results_).first(plan.batch.slices.size());
  {
    const trace::Span run_span("run", plan.batch.num_rows);
    for (const PageCopy& copy : plan.copies) {
      executor_->copy_tokens(copy.from_page, copy.to_page, copy.num_tokens);
    }
    executor_->run(plan.batch, results);
  }
  {
    const trace::Span update_span("update");
    scheduler_.update(results);
  }
  deliver();
  if (!scheduler_.has_work()) check_idle_integrity();
}

const StepPlan& EngineCore::plan_step() {
  const trace::Span span("schedule", scheduler_.num_running());
  const StepPlan& plan = scheduler_.schedule();
  publish_stats();  // a long step's requests no longer count as queued while it runs
  return plan;
}

void EngineCore::deliver() {
  if (scheduler_.updated().empty()) return;
  const trace::Span span("deliver", static_cast<int64_t>(scheduler_.updated().size()));
  for (const Sequence* sequence : scheduler_.updated()) count(*sequence);
  publish_stats();  // first: who has seen a request end finds it in the statistics
  for (Sequence* sequence : scheduler_.updated()) deliver_to(*sequence);
  scheduler_.clear_updated();
}

void EngineCore::deliver_to(Sequence& s) {
  const auto begin = s.tokens.begin() + s.num_prompt() + s.num_delivered;
  TokenEvent event;
  event.ids.assign(begin, s.tokens.end());
  event.logprobs = std::exchange(s.logprobs, {});
  event.prompt_logprobs = std::exchange(s.prompt_logprobs, {});
  event.finish = s.finish;
  event.matched_stop_id = s.matched_stop_id;
  event.error = s.error;
  event.prompt_tokens = s.num_prompt();
  event.cached_tokens = s.cached_tokens;
  event.completion_tokens = s.num_generated();
  event.num_preemptions = s.num_preemptions;
  s.num_delivered = s.num_generated();
  if (s.finish != FinishReason::kNone) {
    std::lock_guard lock(inbox_mutex_);
    live_.erase(s.request.rid);  // before the last event: its reader may use the rid again
  }
  try {
    s.sink->on_event(std::move(event));
  } catch (const std::exception& e) {
    log::error("the sink of request {} failed: {}", s.request.rid, e.what());
  }
}

void EngineCore::count(const Sequence& s) {
  counters_.generated_tokens += s.num_generated() - s.num_delivered;
  rate_tokens_ += s.num_generated() - s.num_delivered;
  switch (s.finish) {
    case FinishReason::kNone:
      break;
    case FinishReason::kStop:
      ++counters_.finished_stop;
      break;
    case FinishReason::kLength:
      ++counters_.finished_length;
      break;
    case FinishReason::kAbort:
      ++counters_.finished_abort;
      break;
    case FinishReason::kError:
      ++counters_.finished_error;
      break;
  }
}

void EngineCore::update_rate() {
  const int64_t elapsed_ns = counters_.last_step_ns - rate_start_ns_;
  if (elapsed_ns < kRateWindowNs) return;
  counters_.generation_tokens_per_second =
      static_cast<double>(rate_tokens_) * 1e9 / static_cast<double>(elapsed_ns);
  rate_start_ns_ = counters_.last_step_ns;
  rate_tokens_ = 0;
}

void EngineCore::publish_stats() {
  counters_.num_running = scheduler_.num_running();
  counters_.num_queued = scheduler_.num_waiting();
  counters_.total_pages = options_.num_pages;
  counters_.free_pages = scheduler_.num_free_pages();
  counters_.cached_pages = scheduler_.num_evictable_pages();
  counters_.cached_tokens = scheduler_.cached_tokens();
  counters_.preemptions = scheduler_.num_preemptions();
  counters_.last_step_ns = clock_.now_ns();
  update_rate();
  {
    std::lock_guard lock(inbox_mutex_);
    num_queued_ = scheduler_.num_waiting() + static_cast<int64_t>(inbox_.submitted.size());
  }
  std::lock_guard lock(stats_mutex_);
  stats_ = counters_;
}

void EngineCore::check_idle_integrity() {
#ifndef NDEBUG
  if (const std::string wrong = scheduler_.check_integrity(); !wrong.empty()) {
    log::error("the page accounts do not agree: {}", wrong);
  }
#endif
}

void EngineCore::die(const std::string& why) {
  log::critical("the engine has failed: {}", why);
  {
    std::lock_guard lock(inbox_mutex_);
    dead_ = true;
    for (auto& sequence : inbox_.submitted) taken_.submitted.push_back(std::move(sequence));
    for (auto& flush : inbox_.flushes) taken_.flushes.push_back(std::move(flush));
    inbox_.clear();
  }
  const Status failed = unavailable("the engine has failed: " + why);
  for (auto& sequence : taken_.submitted) {
    if (sequence == nullptr) continue;  // moved on before the failure
    counters_.prompt_tokens += sequence->num_prompt();
    scheduler_.add(std::move(sequence));
  }
  scheduler_.end_all(FinishReason::kError, failed);
  counters_.alive = false;
  deliver();
  for (auto& flush : taken_.flushes) flushes_.push_back(std::move(flush));
  for (auto& flush : std::exchange(flushes_, {})) flush.done(failed);
  taken_.clear();
  publish_stats();
}

}  // namespace winnow::engine
