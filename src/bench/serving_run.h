// A serving benchmark from its options to its records and figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/backend_formats.h"
#include "bench/dataset.h"
#include "bench/metrics.h"
#include "bench/record.h"
#include "bench/server_probe.h"
#include "bench/stream_client.h"

namespace winnow::bench {

struct ServingOptions {
  const BackendFormat* format = nullptr;
  Url url;
  HttpHeaders headers;
  double ready_timeout_s = 60;
  std::string model;              // "": the server's first
  std::string served_model_name;  // sent in requests; "": model
  std::string tokenizer;          // folder; "": where the server says its own lies, else model
  DatasetOptions dataset;
  int64_t seed = 42;
  double request_rate = 0;  // requests a second, Poisson; 0: all at once
  bool use_trace_timestamps = false;
  int64_t max_concurrency = 0;  // 0: no limit
  int64_t warmup_requests = 1;
  bool flush_cache = false;
  double flush_timeout_s = 60;
  RequestOptions request;
  int64_t io_threads = 0;                   // 0: a quarter of the cores
  bool live = true;                         // a progress line, where stderr is a terminal
  const std::atomic<bool>* stop = nullptr;  // once true, a run ends with what it has
  Slos slos;
};

struct ServingResult {
  std::vector<RequestRecord> records;
  Metrics metrics;
  json::Value server_info;  // after the run; null where the server has none
  double client_cpu_s = 0;  // of this process, during the run
  // Requests that a stop kept from being sent or from ending; they are in no record.
  int64_t num_interrupted = 0;
};

class ServingBench {
 public:
  // Waits for the server, asks what it serves, loads the tokenizer. Throws Error. say: lines that
  // are no results.
  ServingBench(ServingOptions options, std::function<void(std::string)> say);

  // Makes the prompts, warms up, flushes, measures. Throws Error where no warm-up request
  // succeeds, or a stop came before them. Each run of a bench takes prompts of its own seed: seed +
  // run_idx.
  ServingResult run(int64_t run_idx = 0);

  // Between runs.
  ServingOptions& options() { return options_; }

 private:
  void warm_up(const std::vector<PromptRow>& rows);
  std::vector<RequestRecord> measure(const std::vector<PromptRow>& rows, NumpyRandom& random);
  void count_again(std::vector<RequestRecord>& records) const;

  ServingOptions options_;
  std::function<void(std::string)> say_;
  ServerProbe probe_;
  StreamClient client_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  int64_t num_prefix_tokens_ = 0;
  bool incremental_text_ = false;  // as /server_info says
};

// When each of count requests arrives, in seconds: the first at once, then after exponential gaps
// of mean 1 / rate; all at once for a rate of 0.
std::vector<double> poisson_arrivals(NumpyRandom& random, double rate, size_t count);

}  // namespace winnow::bench
