#include "app/compose.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "engine/model_executor.h"
#include "kv/kv_storage.h"
#include "model/decoder.h"
#include "model/memory_plan.h"
#include "text/text_prefix.h"

namespace winnow::app {
namespace {

// Where nothing says how large the cache is to be, a CPU gets room for this many full contexts at
// most: its memory is touched at start and is shared with everything else on the machine.
constexpr int64_t kContextsByDefault = 4;
constexpr int64_t kTokensByDefault = 65536;

int64_t choose_context_length(const ServeOptions& options, const model::ModelConfig& config) {
  const int64_t most = config.max_position_embeddings;
  if (options.context_length > most) {
    throw_error("--context-length {}: the model has {} positions", options.context_length, most);
  }
  return options.context_length > 0 ? options.context_length : most;
}

int64_t choose_num_pages(const ServeOptions& options,
                         const LoadedModel& loaded,
                         int64_t context_length,
                         int64_t memory_bytes) {
  const int64_t page_size = options.page_size;
  const kv::CachePlan cache =
      model::plan_cache(loaded.config, loaded.numerics, static_cast<int32_t>(page_size));
  const auto budget =
      static_cast<int64_t>(static_cast<double>(memory_bytes) * options.mem_fraction_static);
  // The weights are loaded: what is available now is what is left for the cache.
  const model::MemoryPlan plan = model::plan_memory(budget, 0, cache);
  int64_t num_pages = plan.num_pages;
  if (options.max_total_tokens > 0) {
    num_pages = layout::ceil_div(options.max_total_tokens, page_size);
    if (num_pages > plan.num_pages) {
      throw_error(
          "--max-total-tokens {}: the memory holds {} tokens of cache ({} MiB at "
          "--mem-fraction-static {})",
          options.max_total_tokens, plan.num_tokens, budget >> 20, options.mem_fraction_static);
    }
  } else {
    const int64_t wanted = std::max(kContextsByDefault * context_length, kTokensByDefault);
    num_pages = std::min(num_pages, layout::ceil_div(wanted, page_size));
  }
  if (num_pages < 2 && options.max_total_tokens > 0) {
    throw_error("--max-total-tokens {}: must be more than a page of {} tokens",
                options.max_total_tokens, page_size);
  }
  if (num_pages < 2) throw_error("no memory is left for the cache: {} MiB", budget >> 20);
  return num_pages;
}

engine::EngineOptions engine_options(const ServeOptions& options, const LoadedModel& loaded) {
  engine::EngineOptions out;
  out.max_running_requests = static_cast<int32_t>(options.max_running_requests);
  out.max_queued_requests = static_cast<int32_t>(options.max_queued_requests);
  out.page_size = static_cast<int32_t>(options.page_size);
  out.context_length = static_cast<int32_t>(choose_context_length(options, loaded.config));
  out.num_pages = static_cast<int32_t>(
      choose_num_pages(options, loaded, out.context_length, loaded.backend->free_memory_bytes()));
  const int64_t chunk =
      options.chunked_prefill_size < 1 ? out.context_length : options.chunked_prefill_size;
  // Workspace is made for so many rows; prompts that the cache does not hold never fill them.
  out.chunked_prefill_size =
      static_cast<int32_t>(std::min(chunk, int64_t{out.num_pages} * out.page_size));
  out.prefix_cache = !options.disable_radix_cache;
  out.seed = static_cast<uint64_t>(options.random_seed);
  return out;
}

}  // namespace

std::unique_ptr<Composition> compose(const ServeOptions& options, const Clock& clock) {
  check(options);
  auto out = std::make_unique<Composition>();
  // Small files first: what is wrong with them shows before the weights are read.
  const model::ModelConfig config = model::load_config(options.model_path);
  choose_context_length(options, config);
  out->tokenizer_path =
      options.tokenizer_path.empty() ? options.model_path : options.tokenizer_path;
  out->tokenizer = text::load_tokenizer(out->tokenizer_path);
  // Its ids index the embedding.
  if (out->tokenizer->vocab_size() > config.vocab_size) {
    throw_error("{}: the tokenizer has ids up to {}, but vocab_size of {}/config.json is {}",
                out->tokenizer_path, out->tokenizer->vocab_size() - 1, options.model_path,
                config.vocab_size);
  }
  out->chat_format = text::load_chat_format(out->tokenizer_path, config.architecture);
  out->model = load_model(options);
  LoadedModel& loaded = *out->model;
  const engine::EngineOptions engine = engine_options(options, loaded);
  auto executor = std::make_unique<engine::ModelExecutor>(engine, loaded.config, loaded.numerics,
                                                          loaded.weights, *loaded.backend);
  log::info(
      "cache: {} tokens in {} pages, {} MiB; {:.1f} requests of the full context fit",
      int64_t{engine.num_pages} * engine.page_size, engine.num_pages, executor->cache_bytes() >> 20,
      static_cast<double>(int64_t{engine.num_pages} * engine.page_size) / engine.context_length);
  out->engine = std::make_unique<engine::Engine>(engine, std::move(executor), clock);
  return out;
}

server::ServerConfig server_config(const ServeOptions& options, const Composition& composition) {
  server::ServerConfig config;
  config.served_model_name =
      options.served_model_name.empty() ? options.model_path : options.served_model_name;
  config.model_path = options.model_path;
  config.tokenizer_path = composition.tokenizer_path;
  config.api_key = options.api_key;
  config.admin_api_key = options.admin_api_key;
  config.reasoning_parser = options.reasoning_parser;
  config.tool_call_parser = options.tool_call_parser;
  config.weight_version = options.weight_version;
  config.vocab_size = composition.model->config.vocab_size;
  config.text_prefix_ids =
      text::load_text_prefix(composition.tokenizer_path, *composition.tokenizer);
  if (options.sampling_defaults == "model") {
    config.sampling_defaults = server::load_sampling_defaults(options.model_path);
  }
  config.enable_cache_report = options.enable_cache_report;
  config.incremental_streaming_output = options.incremental_streaming_output;
  config.stream_include_usage = options.stream_response_default_include_usage;
  config.watchdog_ns = static_cast<int64_t>(options.watchdog_timeout * 1e9);
  config.tokenizer_workers = static_cast<int>(options.tokenizer_worker_num);
  return config;
}

}  // namespace winnow::app
