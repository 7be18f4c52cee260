// The options of winnow bench serving, spelled as users of SGLang's bench_serving type them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_table.h"
#include "bench/serving_report.h"
#include "bench/serving_run.h"

namespace winnow::app {

// As given, before they are checked against each other.
struct BenchServingOptions {
  std::string backend = "winnow";
  std::string host = "0.0.0.0";
  int64_t port = 0;  // 0: the backend's
  std::string base_url;
  std::string header;
  std::string extra_request_body;
  std::string goodput;
  std::string group_distribution = "uniform";
  double request_rate;  // infinity: all at once
  bool disable_stream = false;
  bool disable_ignore_eos = false;
  bool quiet = false;
  std::string output_file;
  std::string plot;
  std::string sweep;
  bench::ServingOptions serving;  // what needs no check goes there at once
  bench::ReportOptions report;

  BenchServingOptions();
};

// One row an option. The options must outlive the table.
OptionTable bench_serving_option_table(BenchServingOptions& options);

// Fills options.serving from what was given. Throws Error.
void resolve(BenchServingOptions& options);

// "concurrency=1,2,4" or "request-rate=0.5,1": what is swept and over which values. Throws Error.
struct Sweep {
  std::string name;
  std::vector<double> values;
};
Sweep parse_sweep(const std::string& text);

}  // namespace winnow::app
