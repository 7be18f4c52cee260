#include "app/inspect.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/inspection.h"
#include "app/options.h"
#include "backends/backends.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/numerics.h"
#include "model/weights_absorb.h"

namespace winnow::app {

using layout::IndexKeyLayout;
using layout::LatentLayout;

namespace {

constexpr int32_t kPageSize = 64;

struct InspectOptions {
  std::string model_path;
  bool json = false;
  int64_t memory_bytes = 0;
  double memory_fraction = ServeOptions{}.mem_fraction_static;
  int64_t num_ranks = 1;
};

struct CacheRow {
  LatentLayout latent_layout;
  IndexKeyLayout index_key_layout;
  const char* flags;
};

constexpr CacheRow kCacheRows[] = {
    {LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, "--kv-cache-dtype bfloat16"},
    {LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, "--kv-cache-dtype fp8_e4m3"},
    {LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132,
     "--kv-cache-dtype fp8_e4m3 with the winnow backends"},
    {LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132,
     "--kv-cache-dtype fp8_e4m3 with the trtllm backends"},
    {LatentLayout::kBf16_1152, IndexKeyLayout::kBf16_256,
     "--kv-cache-dtype bfloat16 --index-key-dtype bfloat16"},
    {LatentLayout::kF32, IndexKeyLayout::kF32, "--precision reference"},
};

kv::CachePlan plan_of(const model::ModelConfig& config, LatentLayout latent, IndexKeyLayout index) {
  const auto precision =
      latent == LatentLayout::kF32 ? model::Precision::kReference : model::Precision::kDefault;
  return plan_cache(config, choose_numerics(config, precision, latent, index), kPageSize);
}

std::vector<CacheOption> cache_options(const InspectOptions& options, const Inspection& in) {
  std::vector<CacheOption> caches;
  for (const CacheRow& row : kCacheRows) {
    const bool repeats = row.index_key_layout == IndexKeyLayout::kBf16_256;
    if (repeats && !in.config.has_indexer()) continue;
    const kv::CachePlan plan = plan_of(in.config, row.latent_layout, row.index_key_layout);
    CacheOption cache{.latent_layout = plan.latent.layout,
                      .index_key_layout = plan.index_key.layout,
                      .latent_bytes = plan.latent.bytes_per_token(),
                      .index_key_bytes = plan.index_key.bytes_per_token(),
                      .token_bytes = plan.bytes_per_token(),
                      .flags = row.flags,
                      .plan = {}};
    if (options.memory_bytes > 0) {
      const auto usable =
          static_cast<int64_t>(static_cast<double>(options.memory_bytes) * options.memory_fraction);
      cache.plan = model::plan_memory(usable, in.rank_weight_bytes, plan);
    }
    caches.push_back(std::move(cache));
  }
  return caches;
}

template <typename T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Dtypes of the checkpoint's linears, and every cache layout that serve offers.
backends::KernelNeeds kernel_needs(const Inspection& in,
                                   const model::Checkpoint& checkpoint,
                                   const std::vector<model::WeightSlot>& slots) {
  backends::KernelNeeds needs;
  for (const model::WeightSlot& slot : slots) {
    if (slot.kind == model::WeightKind::kVector) continue;
    const auto* tensor = checkpoint.find(slot.name);
    if (tensor == nullptr) continue;  // the head of a tied embedding
    DType dtype = *tensor->entry->dtype;
    // w_uk and w_uv of an e4m3 kv_b_proj are unpacked by the loader.
    if (slot.kind == model::WeightKind::kKvB) dtype = model::absorbed_dtype(dtype, false);
    add_once(needs.weight_dtypes, dtype);
  }
  for (const CacheOption& cache : in.caches) {
    add_once(needs.latent_layouts, cache.latent_layout);
    if (cache.index_key_bytes > 0) add_once(needs.index_key_layouts, cache.index_key_layout);
  }
  return needs;
}

// Asks each backend of this build to prepare for the model's shape, one row at full context.
std::vector<BackendAnswer> ask_backends(const model::ModelConfig& config,
                                        const backends::KernelNeeds& needs) {
  const auto precision = model::Precision::kDefault;
  const auto latent =
      config.quantization.is_fp8() ? LatentLayout::kFp8_656 : LatentLayout::kBf16_1152;
  const auto numerics = choose_numerics(config, precision, latent, IndexKeyLayout::kFp8_132);
  const kv::CachePlan plan = plan_cache(config, numerics, kPageSize);
  const model::DecoderLimits limits{
      .max_rows = 1, .max_logit_rows = 1, .max_context = config.max_position_embeddings};
  const std::unique_ptr<ops::Backend> backends[] = {backends::make_cpu(1)};
  std::vector<BackendAnswer> answers;
  for (const auto& backend : backends) {
    BackendAnswer answer{.name = backend->name()};
    answer.kernels = backends::cpu_kernels(needs, answer.isa);
    try {
      backend->prepare(shape_of(config, plan, numerics, limits));
    } catch (const Error& error) {
      answer.problem = error.what();
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

void run_inspect(const InspectOptions& options, OptionTable& table) {
  apply_with_model_word(table);
  if (options.model_path.empty()) throw_error("--model-path is required");
  Inspection in;
  in.path = options.model_path;
  in.config = model::load_config(options.model_path);
  const model::Checkpoint checkpoint(options.model_path);
  model::ModelWeights shapes;
  const std::vector<model::WeightSlot> slots = make_slots(in.config, shapes);
  in.num_tensors = static_cast<int64_t>(checkpoint.tensors().size());
  in.num_files = checkpoint.num_files();
  in.total_bytes = checkpoint.total_bytes();
  in.inventory = check_tensors(in.config, checkpoint, slots);
  in.memory_bytes = options.memory_bytes;
  in.memory_fraction = options.memory_fraction;
  in.num_ranks = static_cast<int32_t>(options.num_ranks);
  in.rank_weight_bytes = planned_weight_bytes(slots, checkpoint, in.num_ranks, false);
  in.caches = cache_options(options, in);
  in.backends = ask_backends(in.config, kernel_needs(in, checkpoint, slots));
  const std::string text = options.json ? json::dump(to_json(in)) + '\n' : to_text(in);
  std::fputs(text.c_str(), stdout);
}

void add_inspect_rows(OptionTable& t, InspectOptions& o) {
  t.section("Inspect");
  t.text("--model-path --model", o.model_path, "DIR", "Checkpoint folder.");
  t.toggle("--json", o.json, "Print JSON.");
  t.bytes("--memory", o.memory_bytes, "Memory of one device, such as 141GB, to see what fits.");
  t.number("--mem-fraction-static", o.memory_fraction, 0.01, 1.0,
           "Share of the memory for weights and cache.");
  t.integer("--tp-size --tp --tensor-parallel-size", o.num_ranks, 1, 1024,
            "Devices that share the weights.");
}

}  // namespace

Command inspect_command() {
  struct State {
    InspectOptions options;
    OptionTable table;
  };
  auto state = std::make_shared<State>();
  add_inspect_rows(state->table, state->options);
  state->table.positional("model", state->options.model_path, "Checkpoint folder");
  return make_command("inspect", "What a checkpoint holds, costs and needs", state,
                      [state] { run_inspect(state->options, state->table); });
}

}  // namespace winnow::app
