// A run along its time: tokens and requests second by second, the exact peak, the steady part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/record.h"

namespace winnow::bench {

// Buckets of one second from the earliest start, over the requests that succeeded.
struct Seconds {
  int64_t origin_ns = 0;
  std::vector<double> tokens;    // that came in the second
  std::vector<double> requests;  // in flight at any moment of the second, its borders included
};
Seconds by_second(std::span<const RequestRecord> records);

// Requests in flight at one moment, at most: a request that ends when another starts does not
// overlap it.
int64_t peak_in_flight(std::span<const RequestRecord> records);

// From the first to the last moment with at least 9 in 10 of the peak's requests in flight: a run
// without its start and its tail. Moments with fewer in between, as a request makes way for the
// next, belong to it.
struct SteadyWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t min_in_flight = 0;
  double mean_in_flight = 0;
  int64_t num_tokens = 0;     // that came within
  int64_t num_completed = 0;  // requests that ended within

  double seconds() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};
SteadyWindow steady_window(std::span<const RequestRecord> records);

}  // namespace winnow::bench
