#include "bench/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace winnow::bench {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr double kSteadyShare = 0.9;

struct Change {
  int64_t time_ns;
  int64_t by;  // +1: a start, -1: an end

  // Ends first: back to back is no overlap.
  bool operator<(const Change& other) const {
    return time_ns != other.time_ns ? time_ns < other.time_ns : by < other.by;
  }
};

std::vector<Change> changes(std::span<const RequestRecord> records) {
  std::vector<Change> out;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    out.push_back({r.start_ns, 1});
    out.push_back({std::max(r.last_event_ns, r.start_ns), -1});
  }
  std::sort(out.begin(), out.end());
  return out;
}

int64_t peak_of(const std::vector<Change>& ordered) {
  int64_t now = 0;
  int64_t peak = 0;
  for (const Change& change : ordered) peak = std::max(peak, now += change.by);
  return peak;
}

}  // namespace

Seconds by_second(std::span<const RequestRecord> records) {
  Seconds out;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    first = std::min(first, r.start_ns);
    last = std::max(last, r.last_event_ns);
  }
  if (last < first) return out;
  out.origin_ns = first;
  const auto num_seconds = static_cast<size_t>((last - first) / kSecondNs + 1);
  out.tokens.resize(num_seconds);
  out.requests.resize(num_seconds);
  const auto second_of = [&](int64_t ns) {
    return static_cast<size_t>(std::clamp(ns - first, int64_t{0}, last - first) / kSecondNs);
  };
  std::vector<int64_t> times;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    times.clear();
    append_token_times(r, times);
    for (const int64_t t : times) out.tokens[second_of(t)] += 1;
    for (size_t s = second_of(r.start_ns); s <= second_of(r.last_event_ns); ++s) {
      out.requests[s] += 1;
    }
  }
  return out;
}

int64_t peak_in_flight(std::span<const RequestRecord> records) { return peak_of(changes(records)); }

SteadyWindow steady_window(std::span<const RequestRecord> records) {
  const std::vector<Change> ordered = changes(records);
  SteadyWindow window;
  window.min_in_flight =
      static_cast<int64_t>(std::ceil(kSteadyShare * static_cast<double>(peak_of(ordered))));
  if (window.min_in_flight == 0) return window;
  int64_t now = 0;
  bool opened = false;
  for (const Change& change : ordered) {
    const bool was_full = now >= window.min_in_flight;
    now += change.by;
    const bool is_full = now >= window.min_in_flight;
    if (is_full && !std::exchange(opened, true)) window.start_ns = change.time_ns;
    if (was_full && !is_full) window.end_ns = change.time_ns;
  }
  double in_flight_ns = 0;
  std::vector<int64_t> times;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    const int64_t overlap =
        std::min(r.last_event_ns, window.end_ns) - std::max(r.start_ns, window.start_ns);
    in_flight_ns += static_cast<double>(std::max(overlap, int64_t{0}));
    const auto within = [&](int64_t t) { return t > window.start_ns && t <= window.end_ns; };
    window.num_completed += within(r.last_event_ns) ? 1 : 0;
    times.clear();
    append_token_times(r, times);
    window.num_tokens += std::count_if(times.begin(), times.end(), within);
  }
  if (window.end_ns > window.start_ns) {
    window.mean_in_flight = in_flight_ns / static_cast<double>(window.end_ns - window.start_ns);
  }
  return window;
}

}  // namespace winnow::bench
