// What inspect found, and its two renderings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/backends.h"
#include "base/json.h"
#include "model/config.h"
#include "model/memory_plan.h"
#include "model/weights_manifest.h"

namespace winnow::app {

struct CacheOption {
  layout::LatentLayout latent_layout;
  layout::IndexKeyLayout index_key_layout;
  int64_t latent_bytes = 0;     // a token, a layer
  int64_t index_key_bytes = 0;  // a token, a layer that owns an indexer
  int64_t token_bytes = 0;      // a token, all layers
  std::string flags;            // of winnow serve
  model::MemoryPlan plan;       // filled when a memory was given
};

struct BackendAnswer {
  std::string name;
  std::string problem = "";  // "": it serves this model
  std::string isa = "";      // instruction set of its kernels
  std::vector<backends::ServingKernel> kernels = {};
};

struct Inspection {
  std::string path;
  model::ModelConfig config;
  int64_t num_tensors = 0;
  int64_t num_files = 0;
  int64_t total_bytes = 0;
  model::WeightInventory inventory;
  int64_t memory_bytes = 0;  // of one device; 0: not asked
  double memory_fraction = 0;
  int32_t num_ranks = 1;
  int64_t rank_weight_bytes = 0;
  std::vector<CacheOption> caches;
  std::vector<BackendAnswer> backends;
};

std::string to_text(const Inspection& inspection);
json::Value to_json(const Inspection& inspection);

// "0-2, 6, 10, 14, ..., 74": ascending layer numbers as ranges; long lists keep both ends.
std::string format_layers(const std::vector<int32_t>& layers);

}  // namespace winnow::app
