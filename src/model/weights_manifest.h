// Every tensor that a config asks for: the one list of names and shapes. The loader fills its
// destinations; inspect and the checks only compare it with the files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/weights.h"

namespace winnow::model {

enum class WeightKind : uint8_t {
  kLinear,  // f32, bf16, f16, or e4m3 with its <name>_scale_inv
  kTable,   // f32, bf16 or f16: embedding, router
  kVector,  // f32, bf16 or f16, kept as f32
  kKvB,     // a linear that the loader splits into w_uk and w_uv
};

enum class WeightPart : uint8_t {
  kEmbedding,
  kAttention,
  kIndexer,
  kDenseMlp,
  kRouter,
  kExperts,
  kSharedExperts,
  kNorms,
  kHead,
  // Present in files, not loaded:
  kMtp,            // the draft layers behind the last
  kUnusedIndexer,  // of layers that share a top-k (fault B09), or of a family without indexers
  kIgnored,        // rotary tables, a tied lm_head, scalar scales of the KV cache
  kUnknown,
};
inline constexpr int kNumWeightParts = static_cast<int>(WeightPart::kUnknown) + 1;
const char* to_string(WeightPart part);
// Parts that load_weights reads.
constexpr bool is_loaded(WeightPart part) { return part < WeightPart::kMtp; }

// What tensor parallelism divides: nothing, output rows, or input columns.
enum class WeightSplit : uint8_t { kNone, kRows, kCols };

struct WeightSlot {
  std::string name;
  WeightKind kind = WeightKind::kLinear;
  WeightPart part = WeightPart::kUnknown;
  WeightSplit split = WeightSplit::kNone;
  int64_t split_unit = 1;  // rows or columns that stay together: those of one head
  int64_t rows = 0;        // of a vector: its length
  int64_t cols = 0;        // of a vector: 0
  // The destination: one of these, by kind.
  ops::LinearWeight* linear = nullptr;
  const float** vector = nullptr;
  LayerWeights* kv_b = nullptr;

  std::vector<int64_t> shape() const {
    return kind == WeightKind::kVector ? std::vector<int64_t>{rows} : std::vector{rows, cols};
  }
};

// Shapes weights after config (layers, experts) and lists where each tensor goes. The slots point
// into weights, which must not be moved while they are used.
std::vector<WeightSlot> make_slots(const ModelConfig& config, ModelWeights& weights);

// What a checkpoint holds of a manifest.
struct WeightInventory {
  struct Part {
    int64_t tensors = 0;   // scales included
    int64_t elements = 0;  // weights only
    int64_t bytes = 0;     // scales included
  };
  std::array<Part, kNumWeightParts> parts;
  std::vector<std::string> unknown;  // names of kUnknown, in the files' order
  bool has_mtp = false;

  const Part& operator[](WeightPart part) const { return parts[static_cast<size_t>(part)]; }
  int64_t loaded_bytes() const;
};

// Throws Error naming file and tensor: missing, wrong shape, wrong dtype, scale missing or
// misshapen.
WeightInventory check_tensors(const ModelConfig& config,
                              const Checkpoint& checkpoint,
                              const std::vector<WeightSlot>& slots);

std::string scale_name(const std::string& weight_name);

}  // namespace winnow::model
