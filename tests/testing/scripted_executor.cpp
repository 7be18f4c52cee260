#include "testing/scripted_executor.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"

namespace winnow::testing {

ScriptedExecutor::ScriptedExecutor(Writer writer, std::vector<int32_t> eos_ids)
    : writer_(std::move(writer)), eos_ids_(std::move(eos_ids)) {
  WINNOW_CHECK(!eos_ids_.empty(), "a script needs an EOS id");
}

ScriptedExecutor::ScriptedExecutor(Script script, std::vector<int32_t> eos_ids)
    : ScriptedExecutor([script = std::move(script)](const auto&) { return script; },
                       std::move(eos_ids)) {}

void ScriptedExecutor::throw_at_step(int64_t step) {
  std::lock_guard lock(mutex_);
  throw_at_step_ = step;
}

void ScriptedExecutor::set_step_delay_ns(int64_t ns) {
  std::lock_guard lock(mutex_);
  step_delay_ns_ = ns;
}

void ScriptedExecutor::stall() {
  std::lock_guard lock(mutex_);
  stalled_ = true;
}

void ScriptedExecutor::release() {
  {
    std::lock_guard lock(mutex_);
    stalled_ = false;
  }
  changed_.notify_all();
}

void ScriptedExecutor::wait_until_stalled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_waiting_; });
}

int64_t ScriptedExecutor::num_steps() const {
  std::lock_guard lock(mutex_);
  return num_steps_;
}

void ScriptedExecutor::wait_for_turn() {
  int64_t delay_ns = 0;
  {
    std::unique_lock lock(mutex_);
    is_waiting_ = stalled_;
    if (stalled_) changed_.notify_all();
    changed_.wait(lock, [&] { return !stalled_; });
    is_waiting_ = false;
    if (num_steps_++ == throw_at_step_) throw_error("the script says: the device is lost");
    delay_ns = step_delay_ns_;
  }
  if (delay_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay_ns));
}

void ScriptedExecutor::run(const engine::BatchPlan& plan, std::span<engine::SliceResult> results) {
  wait_for_turn();
  for (size_t i = 0; i < plan.slices.size(); ++i) play(plan.slices[i], results[i]);
}

void ScriptedExecutor::copy_tokens(int32_t /*from_page*/,
                                   int32_t /*to_page*/,
                                   int32_t /*num_tokens*/) {}

void ScriptedExecutor::play(const engine::SequenceSlice& slice, engine::SliceResult& result) {
  const engine::GenerateRequest& request = *slice.request;
  // Where the script stands follows from the tokens alone, so preemption changes nothing.
  const auto num_given = static_cast<int64_t>(slice.tokens.size() - request.prompt_ids.size());
  const auto idx = static_cast<size_t>(slice.sequence_idx);
  if (idx >= playing_.size()) playing_.resize(idx + 1);
  Playing& playing = playing_[idx];
  if (num_given == 0 || playing.rid != request.rid) playing = {request.rid, writer_(request)};
  const Script& script = playing.script;

  result.ids.clear();
  result.logprobs.clear();
  result.prompt_logprobs.clear();
  result.error = {};
  if (slice.prompt_logprobs_from >= 0) {
    const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
    const int64_t end = std::min<int64_t>(slice.start + slice.num_tokens + 1, num_prompt);
    for (int64_t p = std::max<int64_t>(slice.prompt_logprobs_from, slice.start + 1); p < end; ++p) {
      result.prompt_logprobs.push_back(
          scripted_logprob(slice.tokens[static_cast<size_t>(p)], request.logprobs));
    }
  }
  if (!slice.sample) return;
  if (script.error_after >= 0 && num_given >= script.error_after) {
    result.error = {StatusCode::kInternal, "the script says: this request fails", ""};
    return;
  }
  size_t step = 0;
  for (int64_t at = 0; at < num_given; ++step) {
    at += script.step_sizes[std::min(step, script.step_sizes.size() - 1)];
  }
  const int32_t step_size = script.step_sizes[std::min(step, script.step_sizes.size() - 1)];
  for (int64_t i = num_given; i < num_given + step_size; ++i) {
    const bool has_id = i < static_cast<int64_t>(script.ids.size());
    result.ids.push_back(has_id ? script.ids[static_cast<size_t>(i)] : eos_ids_.front());
    if (request.logprobs.output) {
      result.logprobs.push_back(scripted_logprob(result.ids.back(), request.logprobs));
    }
  }
}

engine::TokenLogprob scripted_logprob(int32_t id, const engine::LogprobOptions& options) {
  engine::TokenLogprob out;
  out.id = id;
  out.logprob = -static_cast<float>(id % 10) / 10.0f;
  for (int32_t i = 0; i < options.top; ++i) {
    out.top.emplace_back(id + i, out.logprob - static_cast<float>(i));
  }
  for (const int32_t wanted : options.token_ids) {
    out.requested.emplace_back(wanted, -static_cast<float>(wanted % 10) / 10.0f);
  }
  return out;
}

}  // namespace winnow::testing
