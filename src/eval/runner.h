// Asks a server every question of a task, many at once, and grades and writes each answer as it
// comes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/http_message.h"
#include "bench/url.h"
#include "eval/progress_line.h"
#include "eval/request_body.h"
#include "eval/sample_file.h"
#include "eval/task.h"

namespace winnow::eval {

struct RunnerOptions {
  bench::Url url;
  bench::HttpHeaders headers;
  RequestSettings request;
  int64_t repeats = 1;
  int64_t parallel = 512;   // requests in flight
  int64_t max_retries = 5;  // of one request, waiting 1, 2, 4, ... times retry_delay_s between
  double retry_delay_s = 1;
  double timeout_s = 6 * 3600;  // of one answer
  int grading_threads = 1;
};

struct RunResult {
  // Each question and repeat once, those of an earlier run that was resumed included; no texts.
  std::vector<Sample> samples;
  // Of this run alone:
  double seconds = 0;
  int64_t completion_tokens = 0;
  std::vector<double> repeat_seconds;  // from the start to each repeat's last answer
  bool interrupted = false;            // some questions have no sample
};

// earlier: what the file already holds (read_earlier_samples). stop: ends the run early, at once.
// Throws Error when the file cannot be written or grading cannot work.
RunResult run_task(const Task& task,
                   const RunnerOptions& options,
                   std::vector<Sample> earlier,
                   SampleFile& file,
                   ProgressLine& progress,
                   const std::atomic<bool>& stop);

// The samples of a file that count: the last of each question and repeat, none that failed; texts
// dropped. Throws Error.
std::vector<Sample> read_earlier_samples(const std::string& path);

}  // namespace winnow::eval
