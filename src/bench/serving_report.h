// The tables and lines that a serving run ends in.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/serving_run.h"

namespace winnow::bench {

struct ReportOptions {
  bool all_percentiles = false;  // P90 and P95 in every section
  bool cache_report = false;
  bool details = false;  // every request's figures in the JSON
  std::string tag = {};
};

// Fifty columns, in the order of SGLang's report, then what it does not measure.
std::string serving_report(const ServingOptions& options,
                           const Metrics& metrics,
                           const ReportOptions& report);

// One object a run: SGLang's keys, then ours.
json::Value serving_json(const ServingOptions& options,
                         const ServingResult& result,
                         const ReportOptions& report);

// BACKEND_MMDD_PROMPTS_IN_OUT.jsonl for random prompts, else BACKEND_MMDD_PROMPTS_DATASET.jsonl.
std::string default_output_file(const ServingOptions& options, int month, int day);

// One row a run.
struct SweepPoint {
  std::string value;  // of what is swept
  Metrics metrics;
};
std::string sweep_table(const std::string& swept, const std::vector<SweepPoint>& points);

}  // namespace winnow::bench
