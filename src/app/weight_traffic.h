// How many bytes of weights a decoded token reads: the floor that batch-1 decode is held against.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "model/weights.h"

namespace winnow::app {

// One token through every layer and the head; of the routed experts only num_experts_per_tok.
// Embedding rows and norms are too small to count.
int64_t weight_bytes_per_token(const model::ModelConfig& config,
                               const model::ModelWeights& weights);

// Bytes a second that num_threads threads together read from a buffer larger than any cache:
// the best of several passes.
double measure_read_bandwidth(int num_threads);

}  // namespace winnow::app
