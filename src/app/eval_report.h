// What winnow eval prints and writes when it is done.
#pragma once

#include <string>
#include <vector>

#include "app/eval_options.h"
#include "eval/runner.h"
#include "eval/summary.h"

namespace winnow::app {

struct EvalReport {
  std::string eval_name;
  std::string model;
  std::string server;
  std::string samples_path;
  std::vector<std::string> notes;
  eval::Summary summary;
  double seconds = 0;
  double tokens_per_second = 0;
  std::vector<double> repeat_seconds;
  std::vector<std::pair<int64_t, double>> pass_at;  // humaneval: k and pass@k
};

EvalReport make_eval_report(const eval::SampleFileHeader& header,
                            const std::vector<std::string>& notes,
                            const eval::RunResult& result,
                            const std::string& samples_path);

// The Python script's lines, word by word, and then what they do not say.
std::string eval_report_text(const EvalReport& report);
json::Value eval_report_json(const EvalReport& report);
// FILE.jsonl -> FILE.html and FILE.json. Throws Error.
void write_eval_reports(const EvalReport& report);
// The line that the GSM8K script appends to --result-file. Throws Error.
void append_result_line(const EvalOptions& options, const EvalReport& report);

}  // namespace winnow::app
