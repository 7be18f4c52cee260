// The figures of a serving run, from its records alone: nothing here looks at a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record.h"
#include "bench/statistics.h"
#include "bench/timeline.h"

namespace winnow::bench {

// Limits that a good request keeps, in milliseconds.
struct Slos {
  std::optional<double> ttft_ms = {};
  std::optional<double> tpot_ms = {};
  std::optional<double> e2el_ms = {};

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

struct Goodput {
  double requests_per_s = 0;
  double attainment = 0;       // of all requests sent, the share that kept every limit
  double ttft_attainment = 0;  // that kept this one; 0 where it is not set
  double tpot_attainment = 0;
  double e2el_attainment = 0;
};

struct Metrics {
  int64_t completed = 0;
  int64_t failed = 0;
  std::string first_error;  // of the request that was sent first among the failed

  double duration_s = 0;    // first start to last byte
  int64_t total_input = 0;  // served where the server says, else nominal
  int64_t total_input_nominal = 0;
  int64_t total_output = 0;
  int64_t total_output_retokenized = 0;
  double request_throughput = 0;
  double input_throughput = 0;
  double output_throughput = 0;
  double total_throughput = 0;

  // Milliseconds.
  Summary e2e;
  Summary e2e_queued;  // from arrival: the wait for the concurrency limit included
  Summary ttft;
  Summary first_text;  // requests that gave text
  Summary tpot;        // requests of two tokens or more
  Summary itl;         // all requests' gaps together

  double concurrency = 0;                // sum of latencies / duration
  double max_output_tokens_per_s = 0;    // busiest second
  int64_t max_concurrent_requests = 0;   // of whole seconds: up to twice the limit
  int64_t peak_concurrent_requests = 0;  // at one moment
  SteadyWindow steady;

  int64_t cached_tokens = -1;  // of the prompts; -1: the server does not say
  double cached_share = 0;
  double accept_length = 0;  // 0: no speculation
  std::optional<Goodput> goodput;
};

Metrics compute_metrics(std::span<const RequestRecord> records, const Slos& slos = {});

// What a reader should be told: failures, answers from the cache, lengths other than planned.
std::vector<std::string> warnings(std::span<const RequestRecord> records, const Metrics& metrics);

}  // namespace winnow::bench
