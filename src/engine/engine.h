// The engine as the API side sees it: submit, cancel, look. One thread of its own runs the steps;
// every call here may come from any thread and returns at once unless it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "engine/request.h"

namespace winnow::engine {

class Executor;
class EngineCore;

struct EngineOptions {
  int32_t max_running_requests = 256;
  int32_t max_queued_requests = 4096;
  int32_t chunked_prefill_size = 512;  // rows of one step that may be prompt tokens
  int32_t page_size = 64;
  int32_t num_pages = 0;
  int32_t context_length = 0;  // tokens of prompt and answer together
  bool prefix_cache = true;
  uint64_t seed = 0;  // of requests that bring none
};

struct EngineStats {
  int64_t num_running = 0;
  int64_t num_queued = 0;
  int64_t total_pages = 0;
  int64_t free_pages = 0;
  int64_t cached_pages = 0;   // held by the prefix cache only, evictable
  int64_t steps = 0;          // heartbeat: grows with every pass of the loop, idle or not
  int64_t last_step_ns = 0;   // Clock time of the last pass
  int64_t prompt_tokens = 0;  // totals since start; of all accepted requests
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t preemptions = 0;
  int64_t finished_stop = 0;
  int64_t finished_length = 0;
  int64_t finished_abort = 0;
  int64_t finished_error = 0;
  double generation_tokens_per_second = 0;  // over the last full second
  bool alive = true;                        // false: the engine thread died, nothing will be served
};

class Engine {
 public:
  // The executor decides what a step computes: the model, or a script in tests.
  Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, const Clock& clock);
  ~Engine();  // stop(0)
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // kInvalidArgument for what can never run (a prompt longer than context or pool, fault B49; a
  // rid that is in use), kUnavailable when the queue is full, or the engine stopping or dead. On
  // success the sink gets at least one event. max_new_tokens is lowered to what context and pool
  // leave: such a request ends with kLength.
  Status submit(GenerateRequest request, std::shared_ptr<TokenSink> sink);
  // The client went away, or an abort call: ends with kAbort. Unknown rids are ignored.
  void cancel(std::string_view rid);
  // The API side saw a stop string: ends with a bare kStop event. Tokens of a step that ran
  // meanwhile may come before it. Unknown rids are ignored.
  void finish(std::string_view rid);
  void cancel_all();
  // Drops the prefix cache as soon as nothing runs or waits, and says so through done, on the
  // engine's thread: kUnavailable where that has not come after wait_ns. Must not block.
  void flush_cache(int64_t wait_ns, std::function<void(const Status&)> done);

  // A consistent copy made at the last step; never waits for a step.
  EngineStats stats() const;
  const EngineOptions& options() const;

  // Refuses new requests, lets running ones finish for at most drain_ns, aborts the rest, joins.
  void stop(int64_t drain_ns);

 private:
  std::unique_ptr<EngineCore> core_;
};

}  // namespace winnow::engine
