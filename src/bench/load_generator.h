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
};

// What a live line shows; safe to read while a run goes on.
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
// it have started and fewer than max_concurrency are in flight. Blocks; records in that order.
// A record a request. Of those that a stop kept from being sent or from ending, interrupted is set.
std::vector<RequestRecord> run_load(StreamClient& client,
                                    std::vector<PlannedRequest> requests,
                                    const LoadOptions& options);

}  // namespace winnow::bench
