// An executor without a model: it delivers given ids, 1 to 8 a step, and fails or stalls when told
// to. So tests of stops, usage, streaming, parsers and the server need no weights.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/executor.h"

namespace winnow::testing {

struct Script {
  std::vector<int32_t> ids;               // then the first EOS id, for ever
  std::vector<int32_t> step_sizes = {1};  // ids a step, in turn; the last repeats
  int64_t error_after = -1;               // this request alone fails once it has so many ids
};

class ScriptedExecutor final : public engine::Executor {
 public:
  // Called on the engine's thread before a request's first token (again when it comes back from
  // preemption: it must then give the same script).
  using Writer = std::function<Script(const engine::GenerateRequest&)>;

  ScriptedExecutor(Writer writer, std::vector<int32_t> eos_ids);
  // The same script for everyone.
  ScriptedExecutor(Script script, std::vector<int32_t> eos_ids);

  // These may be called from any thread.
  void throw_at_step(int64_t step);  // counted from 0: that run() throws Error
  void set_step_delay_ns(int64_t ns);
  void stall();               // run() waits
  void wait_until_stalled();  // until it does
  void release();
  int64_t num_steps() const;

  // Log-probs, where asked for, are -(id % 10) / 10 for the token itself; the alternatives are the
  // ids that follow it, each 1 less likely than the one before.
  void run(const engine::BatchPlan& plan, std::span<engine::SliceResult> results) override;
  void copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) override;
  std::span<const int32_t> eos_ids() const override { return eos_ids_; }

 private:
  struct Playing {
    std::string rid;
    Script script;
  };
  void wait_for_turn();
  void play(const engine::SequenceSlice& slice, engine::SliceResult& result);

  const Writer writer_;
  const std::vector<int32_t> eos_ids_;
  std::vector<Playing> playing_;  // [sequence_idx]
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_steps_ = 0;
  int64_t throw_at_step_ = -1;
  int64_t step_delay_ns_ = 0;
  bool stalled_ = false;
  bool is_waiting_ = false;  // run() stands stalled
};

// The log-prob that run() reports for an id.
engine::TokenLogprob scripted_logprob(int32_t id, const engine::LogprobOptions& options);

}  // namespace winnow::testing
