// What a model needs before a byte is allocated: weights on one rank, and how many cache pages the
// rest of the memory holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kv/kv_storage.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/weights_manifest.h"

namespace winnow::model {

// Rows or columns [begin, begin + size) of a weight that one of num_ranks holds.
struct SplitRange {
  int64_t begin = 0;
  int64_t size = 0;
  // Of a block-scaled weight, the same in scale rows or columns: begin is always on a block border,
  // so a shard is a weight of its own with its own scales (fault B80).
  int64_t scale_begin = 0;
  int64_t scale_size = 0;
};

// Nothing when the parts would not be equal or, block scaled, would not start on block borders.
std::optional<SplitRange> split_range(int64_t extent,
                                      int32_t rank,
                                      int32_t num_ranks,
                                      bool block_scaled);

// Bytes of the loaded weights on one of num_ranks ranks that split heads, intermediate channels
// and the vocabulary, and hold copies of the rest. kv_b counts as what the loader makes of it.
// Throws Error naming a tensor that cannot be split.
int64_t planned_weight_bytes(const std::vector<WeightSlot>& slots,
                             const Checkpoint& checkpoint,
                             int32_t num_ranks,
                             bool reference_precision);

struct MemoryPlan {
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;  // of num_pages
  int64_t num_pages = 0;    // 0: the weights alone are too large
  int64_t num_tokens = 0;
};

// memory_bytes: what weights and cache may take together.
MemoryPlan plan_memory(int64_t memory_bytes, int64_t weight_bytes, const kv::CachePlan& cache);

}  // namespace winnow::model
