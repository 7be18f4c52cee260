#include "app/options.h"

#include <thread>

#include "base/error.h"
#include "text/reasoning_parser.h"
#include "text/tool_call_parser.h"

namespace winnow::app {
namespace {

constexpr int64_t kMany = INT32_MAX;

const std::vector<std::string> kAttentionBackends = {
    "auto", "flashmla_sparse", "flashmla_kv", "flashmla_auto", "trtllm", "winnow"};

std::vector<std::string> with_none(std::vector<std::string> names) {
  names.insert(names.begin(), "");
  return names;
}

// Whose table: of a checkpoint and its arithmetic, or of a whole engine.
enum class Scope { kCheckpoint, kEngine };

void add_checkpoint_rows(OptionTable& t, ServeOptions& o, Scope scope) {
  const bool engine = scope == Scope::kEngine;
  t.section("Model");
  t.text("--model-path --model", o.model_path, "DIR", "Checkpoint folder.");
  if (engine) {
    t.text("--tokenizer-path", o.tokenizer_path, "DIR",
           "Folder of the tokenizer and chat template; the checkpoint's where none is given.");
  }
  t.choice("--device", o.device, {"cpu"}, "What computes.");
  t.integer("--threads", o.threads, 0, 1024, "CPU threads; 0: one for each core.");
  t.choice("--precision", o.precision, {"default", "reference"},
           "default: as the checkpoint was made to be served. reference: fp32 throughout.");
  t.toggle("--batch-invariant --enable-deterministic-inference", o.batch_invariant,
           "Accepted; on a CPU a request's bits never depend on its batch, chunks or prefix hits.");
  if (engine) {
    t.integer("--context-length", o.context_length, 0, kMany,
              "Tokens of prompt and answer together; 0: the model's.");
  }
  t.toggle("--trust-remote-code", o.trust_remote_code, "Accepted; no remote code is ever run.");
  t.integer("--tp-size --tp --tensor-parallel-size", o.tp_size, 1, 1024,
            "Devices that share every layer. On a CPU: 1.");
  t.integer("--dp-size --dp --data-parallel-size", o.dp_size, 1, 1024,
            "Groups with caches of their own. On a CPU: 1.");
  t.toggle("--enable-dp-attention", o.enable_dp_attention,
           "Attention by data-parallel groups; without effect while --dp is 1.");
}

void add_cache_rows(OptionTable& t, ServeOptions& o, Scope scope) {
  t.section("Cache and attention");
  t.choice("--kv-cache-dtype", o.kv_cache_dtype, {"auto", "bfloat16", "bf16", "fp8_e4m3"},
           "Element type of the latent cache. auto: fp8_e4m3 for FP8 checkpoints and where a "
           "backend needs it, else bfloat16.");
  t.choice("--index-key-dtype", o.index_key_dtype, {"fp8", "bfloat16", "float32"},
           "Element type of the indexer's keys.");
  t.choice("--attention-backend", o.attention_backend, {"auto", "dsa", "nsa"},
           "Accepted; the model decides.");
  t.choice("--dsa-prefill-backend --nsa-prefill-backend", o.prefill_backend, kAttentionBackends,
           "Names a cache layout: flashmla_sparse (bf16 or fp8), flashmla_kv (fp8), "
           "flashmla_auto (bf16 or fp8), trtllm (bf16 or fp8 without scales), winnow (bf16 or fp8 "
           "with one scale a token).");
  t.choice("--dsa-decode-backend --nsa-decode-backend", o.decode_backend, kAttentionBackends,
           "The same for decode; both must name one layout.");
  t.integer("--page-size", o.page_size, 1, 64, "Tokens of a cache page.");
  if (scope == Scope::kCheckpoint) return;
  t.number("--mem-fraction-static", o.mem_fraction_static, 0.01, 1.0,
           "Share of the free memory that weights and cache may take.");
  t.integer("--max-total-tokens", o.max_total_tokens, 0, kMany,
            "Tokens of the cache; 0: what the memory holds.");
  t.toggle("--disable-radix-cache", o.disable_radix_cache, "No reuse of prompt prefixes.");
}

void add_scheduling_rows(OptionTable& t, ServeOptions& o) {
  t.section("Scheduling");
  t.integer("--chunked-prefill-size", o.chunked_prefill_size, -1, kMany,
            "Prompt tokens of one step; -1: whole prompts.");
  t.integer("--max-running-requests", o.max_running_requests, 1, 65536,
            "Sequences that run at once.");
  t.integer("--max-queued-requests", o.max_queued_requests, 1, kMany,
            "Sequences that may wait; beyond, 503.");
  t.integer("--random-seed", o.random_seed, 0, INT64_MAX, "Seed of requests that bring none.");
}

void add_common_rows(OptionTable& t, ServeOptions& o) {
  t.section("Logs and files");
  t.choice("--log-level", o.log_level, {"debug", "info", "warning", "error"}, "What is logged.");
  t.text("--trace", o.trace, "FILE", "Chrome trace of each step's phases and ops.");
  t.text("--config", o.config, "FILE",
         "JSON object with values for any of these options; the command line wins.");
}

void add_server_rows(OptionTable& t, ServeOptions& o) {
  t.section("Server");
  t.text("--host", o.host, "ADDRESS", "Where to listen.");
  t.integer("--port", o.port, 0, 65535, "TCP port; 0: any free one.");
  t.text("--served-model-name", o.served_model_name, "NAME",
         "Shown by /v1/models; the model path where none is given.");
  t.text("--api-key", o.api_key, "KEY",
         "Every route but /health, /health_generate and /metrics then asks for it.");
  t.text("--admin-api-key", o.admin_api_key, "KEY", "Asked for by /flush_cache and /server_info.");
  t.choice("--reasoning-parser", o.reasoning_parser, with_none(text::reasoning_parser_names()),
           "Splits the thinking off into reasoning_content.");
  t.choice("--tool-call-parser", o.tool_call_parser, with_none(text::tool_call_parser_names()),
           "Turns the calls of a request that brings tools into tool_calls.");
  t.choice("--sampling-defaults", o.sampling_defaults, {"model", "openai"},
           "model: chat requests that bring no sampling values get generation_config.json's.");
  t.text("--weight-version", o.weight_version, "NAME", "Shown in answers.");
  t.toggle("--enable-cache-report", o.enable_cache_report,
           "usage.prompt_tokens_details shows cached tokens.");
  t.toggle("--incremental-streaming-output", o.incremental_streaming_output,
           "/generate streams differences instead of everything so far.");
  t.toggle("--stream-response-default-include-usage", o.stream_response_default_include_usage,
           "OpenAI streams end with usage unless a request says otherwise.");
  t.toggle("--enable-metrics", o.enable_metrics, "Accepted; /metrics is always there.");
  t.toggle("--skip-server-warmup", o.skip_server_warmup,
           "Ready without the one request that tries everything out.");
  t.integer("--tokenizer-worker-num", o.tokenizer_worker_num, 1, 64,
            "Threads that parse, render and tokenize requests.");
  t.number("--watchdog-timeout", o.watchdog_timeout, 1, 1e6,
           "Seconds that one step may take before /health fails.");
  t.number("--drain-timeout", o.drain_timeout, 0, 1e6,
           "Seconds that running requests get to finish at shutdown.");
}

}  // namespace

OptionTable checkpoint_option_table(ServeOptions& options) {
  OptionTable table;
  add_checkpoint_rows(table, options, Scope::kCheckpoint);
  add_cache_rows(table, options, Scope::kCheckpoint);
  add_common_rows(table, options);
  return table;
}

OptionTable engine_option_table(ServeOptions& options) {
  OptionTable table;
  add_checkpoint_rows(table, options, Scope::kEngine);
  add_cache_rows(table, options, Scope::kEngine);
  add_scheduling_rows(table, options);
  add_common_rows(table, options);
  return table;
}

OptionTable serve_option_table(ServeOptions& options) {
  OptionTable table;
  add_checkpoint_rows(table, options, Scope::kEngine);
  add_cache_rows(table, options, Scope::kEngine);
  add_scheduling_rows(table, options);
  add_server_rows(table, options);
  add_common_rows(table, options);
  return table;
}

void apply_with_model_word(OptionTable& table) {
  std::string first;
  for (const OptionRow& row : table.rows()) {
    const bool names_model = row.flags.front() == "--model-path" || row.positional();
    if (!names_model || row.given.empty()) continue;
    if (!first.empty()) {
      throw_error("the model is given twice: {} and {}", first, row.given.back());
    }
    first = row.given.back();
  }
  table.apply();
}

void check(const ServeOptions& options) {
  if (options.model_path.empty()) throw_error("--model-path is required");
  if (options.context_length == 1) throw_error("--context-length 1: leaves no room for an answer");
  if (options.chunked_prefill_size == 0) {
    throw_error("--chunked-prefill-size 0: give the tokens of one step, or -1 for whole prompts");
  }
  const ServeOptions usual;
  if (options.precision == "reference" && (options.kv_cache_dtype != usual.kv_cache_dtype ||
                                           options.index_key_dtype != usual.index_key_dtype)) {
    throw_error(
        "--precision reference keeps its caches in fp32: leave out --kv-cache-dtype and "
        "--index-key-dtype");
  }
  if (options.tp_size > 1 && options.device == "cpu") {
    throw_error(
        "--tp {}: the CPU backend is one device; leave --tp at 1 and bound its threads "
        "with --threads",
        options.tp_size);
  }
  if (options.dp_size > 1 && options.device == "cpu") {
    throw_error("--dp {}: the CPU backend is one device; leave --dp at 1", options.dp_size);
  }
}

std::string options_markdown() {
  ServeOptions options;
  const OptionTable checkpoint = checkpoint_option_table(options);
  const OptionTable engine = engine_option_table(options);
  const auto also = [&](const std::string& flag) -> std::string {
    if (checkpoint.has(flag)) return "generate, score, bench offline";
    return engine.has(flag) ? "generate" : "";
  };
  return "# Options of `winnow serve`\n\nFlags may be shortened to any unique prefix. In a "
         "`--config` file the keys are the flags without the dashes in front. The last column "
         "names the other subcommands that take an option; `--help` shows what they take "
         "besides.\n" +
         serve_option_table(options).markdown(also);
}

}  // namespace winnow::app
