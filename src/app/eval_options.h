// The options of winnow eval, spelled as users of the Python scripts type them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_table.h"
#include "eval/request_body.h"

namespace winnow::app {

struct EvalOptions {
  std::string eval_name;

  // Server
  std::string base_url;  // "": http://host:port
  std::string host = "127.0.0.1";
  int64_t port = 30000;
  std::string model;  // "": as the server says

  // Requests
  std::string api = "chat";
  int64_t num_threads = 512;
  int64_t max_tokens = 2048;
  double temperature = 0;
  double top_p = 1;
  int64_t top_k = 0;  // 0: not sent
  double min_p = -1;  // -1: not sent
  int64_t seed = -1;  // -1: not sent
  std::string thinking_mode;
  std::string chat_template_kwargs;  // JSON
  std::string reasoning_effort;
  double timeout = 6 * 3600;
  int64_t max_retries = 5;

  // Questions
  std::string data_path;
  int64_t num_examples = 0;  // 0: all
  int64_t num_shots = 5;
  bool parity = false;
  bool lenient = false;
  std::string categories;
  int64_t min_context_length = 0;
  int64_t max_context_length = 0;
  bool allow_code_execution = false;
  std::vector<int64_t> lengths = {1024, 4096, 16384};
  std::vector<int64_t> depths = {0, 25, 50, 75, 100};
  int64_t per_cell = 4;
  int64_t num_distractors = 3;
  int64_t text_seed = 0;
  std::string tokenizer_path;

  // Run
  int64_t repeat = 1;
  std::string output;
  std::string resume;
  std::string result_file;
  std::string backend = "srt";
  std::string device = "auto";
  bool json = false;
  bool print = true;  // the figures; no option: a comparison prints its own
  std::string config;
};

const std::vector<std::string>& eval_names();
// What an eval's options are where none are given.
EvalOptions default_eval_options(const std::string& eval_name);
// The rows that eval_name has; all rows for "". The options must outlive the table.
OptionTable eval_option_table(EvalOptions& options, const std::string& eval_name);

// Throws Error naming the option.
eval::RequestSettings request_settings(const EvalOptions& options);

}  // namespace winnow::app
