// The options of everything that runs a model, spelled as users of SGLang type them.
#pragma once

#include <cstdint>
#include <string>

#include "app/option_table.h"
#include "layout/kv_layout.h"

namespace winnow::app {

struct ServeOptions {
  // Model
  std::string model_path;
  std::string tokenizer_path;     // "": model_path
  std::string served_model_name;  // "": model_path
  std::string device = "cpu";
  int64_t threads = 0;  // 0: one for each core
  std::string precision = "default";
  bool batch_invariant = false;  // the CPU backend is, asked or not
  int64_t context_length = 0;    // 0: the model's
  bool trust_remote_code = false;
  int64_t tp_size = 1;
  int64_t dp_size = 1;
  bool enable_dp_attention = false;

  // Cache and attention
  std::string kv_cache_dtype = "auto";
  std::string index_key_dtype = "fp8";
  std::string attention_backend = "auto";
  std::string prefill_backend = "auto";
  std::string decode_backend = "auto";
  double mem_fraction_static = 0.85;
  int64_t max_total_tokens = 0;  // 0: what the memory holds
  int64_t page_size = 64;
  bool disable_radix_cache = false;

  // Scheduling
  int64_t chunked_prefill_size = 512;  // -1: whole prompts
  int64_t max_running_requests = 256;
  int64_t max_queued_requests = 4096;
  int64_t random_seed = 0;

  // Server
  std::string host = "127.0.0.1";
  int64_t port = 30000;
  std::string api_key;
  std::string admin_api_key;
  std::string reasoning_parser;
  std::string tool_call_parser;
  std::string sampling_defaults = "model";
  std::string weight_version = "default";
  bool enable_cache_report = false;
  bool incremental_streaming_output = false;
  bool stream_response_default_include_usage = false;
  bool enable_metrics = false;
  bool skip_server_warmup = false;
  int64_t tokenizer_worker_num = 2;
  double watchdog_timeout = 300;  // seconds
  double drain_timeout = 30;      // seconds

  // Looking inside
  std::string log_level = "info";
  std::string trace;
  std::string config;  // file with values for any of these
};

// One row each. The options must outlive the table.
OptionTable checkpoint_option_table(ServeOptions& options);  // a model and its arithmetic: score
OptionTable engine_option_table(ServeOptions& options);      // what generate needs
// For commands that take the checkpoint as a word besides: not both on one command line.
void apply_with_model_word(OptionTable& table);
OptionTable serve_option_table(ServeOptions& options);

// What cannot work whatever the model is: --tp 2 on a CPU, backend names of no kernel here, ...
// Throws Error with the way out.
void check(const ServeOptions& options);

// The latent cache layout that dtype and the two backend names ask for. Throws Error with the
// pairs that work when prefill and decode would need two.
layout::LatentLayout choose_latent_layout(const ServeOptions& options, bool fp8_checkpoint);

// docs/options.md
std::string options_markdown();

}  // namespace winnow::app
