// Sends requests when they are due, so many at once as are allowed, and records what comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/event_reader.h"
#include "bench/record.h"
#include "bench/stream_client.h"

namespace winnow::bench {

struct PlannedRequest {
  std::string body;
  double due_s = 0;  // from the run's start
  int64_t prompt_len = 0;
  int64_t output_len = 0;
  // Of a conversation: how long the prompt of each later turn is to be, and what makes the next
  // turn's body of the answer before; called turn by turn, on an I/O thread.
  std::vector<int64_t> later_prompt_lens = {};
  std::function<std::string(const std::string& answer)> next_body = {};

  size_t num_turns() const { return 1 + later_prompt_lens.size(); }
};

// What a live line shows, a conversation counted once; safe to read while a run goes on.
struct LoadProgress {
  std::atomic<int64_t> started{0};
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> tokens{0};
};

struct LoadOptions {
  std::string target;
  EventReaderOptions events;
  int64_t max_concurrency = 0;  // 0: no limit
  // Called a few times a second from the thread that runs the load.
  std::function<void(const LoadProgress&)> show = {};
  // Once true, nothing more is sent and what is under way is cut off; looked at a few times a
  // second. May be nullptr.
  const std::atomic<bool>* stop = nullptr;
};

// Requests must be in the order of their due times; each starts once it is due and those before
// it have started and fewer than max_concurrency are in flight. The turns of a conversation follow
// each other at once, in one place of those; one that fails is the last. Blocks; records in that
// order, one a turn. Of those that a stop kept from being sent or from ending, interrupted is set.
std::vector<RequestRecord> run_load(StreamClient& client,
                                    std::vector<PlannedRequest> requests,
                                    const LoadOptions& options);

}  // namespace winnow::bench
