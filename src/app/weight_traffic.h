// How many bytes of weights a decoded token reads: the floor that batch-1 decode is held against.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "model/weights.h"

namespace winnow::app {

// One token through every layer and the head; of the routed experts only num_experts_per_tok.
// Embedding rows and norms are too small to count.
int64_t weight_bytes_per_token(const model::ModelConfig& config,
                               const model::ModelWeights& weights);

// Reads a buffer larger than any cache with all threads of a pool.
class ReadBandwidth {
 public:
  explicit ReadBandwidth(ThreadPool& pool);
  // Bytes a second of one pass, some 20 ms. What a machine's memory gives changes from second to
  // second where others share it: measure beside each step that is held against it.
  double measure();

 private:
  ThreadPool& pool_;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> sums_;  // a cache line a thread
};

}  // namespace winnow::app
