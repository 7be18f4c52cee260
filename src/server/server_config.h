// What the command line decides about the server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace winnow::server {

// Sampling values of requests that bring none: the checkpoint's generation_config.json.
struct SamplingDefaults {
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::optional<double> min_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<int64_t> top_k = {};
};

// Reads generation_config.json of a checkpoint folder; nothing set where there is no such file.
// Throws Error naming the file and the field.
SamplingDefaults load_sampling_defaults(const std::string& model_path);

struct ServerConfig {
  std::string served_model_name = "default";
  std::string model_path;
  std::string tokenizer_path;
  std::string api_key;           // "": open to everyone
  std::string admin_api_key;     // "": admin routes take the api_key
  std::string reasoning_parser;  // a row of text's table; "": reasoning stays in the content
  std::string tool_call_parser;  // a row of text/tool_call_parser.h; "": calls stay in the content
  std::string weight_version = "default";
  int64_t vocab_size = 0;                // of the model: ids in requests are below it
  std::vector<int32_t> text_prefix_ids;  // in front of prompts given as text (BOS), often empty
  SamplingDefaults sampling_defaults;
  bool enable_cache_report = false;           // usage.prompt_tokens_details
  bool incremental_streaming_output = false;  // /generate streams differences
  bool stream_include_usage = false;          // chat and completions streams end with usage
  int64_t watchdog_ns = 300'000'000'000;      // /health fails when no step ended for so long
  int tokenizer_workers = 2;
  int output_workers = 1;
  json::Object launch_arguments;  // shown by /server_info
};

}  // namespace winnow::server
