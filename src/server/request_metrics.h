// Counters and histograms of the API side. Counters only ever grow, and tokens are counted as the
// usage fields count them (fault B113). A request here is one sequence: prompts times choices.
#pragma once

#include <cstdint>
#include <mutex>

#include "server/choice_output.h"
#include "server/histogram.h"

namespace winnow::server {

class RequestMetrics {
 public:
  struct Values {
    Values();
    int64_t requests_streaming = 0;
    int64_t requests_whole = 0;
    int64_t refused = 0;  // 4xx and 503 answers to requests that wanted to generate
    int64_t finished_stop = 0;
    int64_t finished_length = 0;
    int64_t finished_abort = 0;
    int64_t finished_error = 0;
    int64_t prompt_tokens = 0;
    int64_t cached_tokens = 0;
    int64_t generation_tokens = 0;
    Histogram time_to_first_token_s;
    Histogram inter_token_latency_s;
    Histogram e2e_latency_s;
    Histogram prompt_tokens_histogram;
    Histogram generation_tokens_histogram;
  };

  void on_start(bool streaming, int64_t num_sequences);
  void on_refused();
  void on_first_token(int64_t since_arrival_ns);
  // A step of k tokens gives k observations of gap / k.
  void on_tokens_gap(int64_t gap_ns, int64_t num_tokens);
  void on_generated(int64_t num_tokens);
  void on_finish(const ChoiceOutput& output, int64_t latency_ns);
  void on_failure(int64_t num_sequences);

  Values values() const;  // one consistent copy

 private:
  mutable std::mutex mutex_;
  Values values_;
};

}  // namespace winnow::server
