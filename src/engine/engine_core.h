// The engine's thread: takes messages in, runs steps, hands events out.
//
// Callers touch only the inbox and the published statistics, each under a mutex that is never held
// while a step runs. The thread takes the inbox whole at the top of every pass, so a cancelled
// request stops within one step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/scheduler.h"

namespace winnow::engine {

class EngineCore {
 public:
  EngineCore(const EngineOptions& options, std::unique_ptr<Executor> executor, const Clock& clock);
  ~EngineCore();

  Status submit(GenerateRequest request, std::shared_ptr<TokenSink> sink);
  // Ends a live request with kAbort or kStop.
  void end(std::string_view rid, FinishReason reason);
  void end_all();
  void flush_cache(int64_t wait_ns, std::function<void(const Status&)> done);
  EngineStats stats() const;
  const EngineOptions& options() const { return options_; }
  void stop(int64_t drain_ns);

 private:
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct LiveRequest {
    uint64_t id = 0;
    bool is_ending = false;  // a second cancel or finish adds nothing to the inbox
  };
  struct EndMessage {
    uint64_t id = 0;
    FinishReason reason = FinishReason::kNone;
  };
  struct FlushMessage {
    int64_t until_ns = 0;
    std::function<void(const Status&)> done;
  };
  // Bounded: submissions by max_queued_requests, ends by the live requests, flushes by those who
  // wait for their answer.
  struct Inbox {
    std::vector<std::unique_ptr<Sequence>> submitted;
    std::vector<EndMessage> ends;
    std::vector<FlushMessage> flushes;
    bool end_all = false;

    bool empty() const { return submitted.empty() && ends.empty() && flushes.empty() && !end_all; }
    void clear();
  };

  void run_thread();
  // False when the thread shall end.
  bool take_messages();
  void handle_messages();
  void flush_where_idle();
  void step();
  const StepPlan& plan_step();
  void deliver();
  void count(const Sequence& sequence);
  void deliver_to(Sequence& sequence);
  void update_rate();
  void publish_stats();
  void check_idle_integrity();
  void die(const std::string& why);

  const EngineOptions options_;
  const std::unique_ptr<Executor> executor_;
  const Clock& clock_;

  // Of the engine thread.
  Scheduler scheduler_;
  std::vector<SliceResult> results_;  // [max_running_requests]
  Inbox taken_;
  std::vector<FlushMessage> flushes_;  // those that wait for an idle moment
  EngineStats counters_;
  int64_t rate_start_ns_ = 0;
  int64_t rate_tokens_ = 0;

  mutable std::mutex inbox_mutex_;
  std::condition_variable inbox_ready_;
  Inbox inbox_;
  std::unordered_map<std::string, LiveRequest, StringHash, std::equal_to<>> live_;
  uint64_t next_id_ = 0;
  int64_t num_queued_ = 0;  // submitted and not yet admitted, as of the last pass, plus the inbox
  bool stopping_ = false;
  bool dead_ = false;
  int64_t drain_until_ns_ = 0;

  mutable std::mutex stats_mutex_;
  EngineStats stats_;

  std::mutex join_mutex_;
  std::thread thread_;  // the last member: it starts when all else is there
};

}  // namespace winnow::engine
