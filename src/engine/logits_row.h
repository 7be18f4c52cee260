// Passes over one row of fp32 logits [vocab_size], written so that a plain x86-64 compiler
// vectorises them. Without fused multiply-adds and with fixed summing order, they give the same
// bits on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace winnow::engine {

struct RowPeak {
  int32_t id = -1;  // the lowest id of the largest logit; -1: no finite logit, a NaN or +inf
  float logit = 0;
};
RowPeak find_peak(std::span<const float> logits);

// weights[i] = exp((logits[i] - peak) * scale); 0 where that is below e^-87.68. scale > 0.
void exp_weights(std::span<const float> logits, float peak, float scale, std::span<float> weights);

// Sums of blocks of kSumBlock weights, in order; returns the sum of all.
inline constexpr size_t kSumBlock = 512;
double sum_blocks(std::span<const float> weights, std::vector<double>& block_sums);

// log(sum(exp(logits))).
double log_sum_exp(std::span<const float> logits, float peak);

// The count largest (fewer if the row is shorter), best first, ties by lowest id.
void select_top(std::span<const float> logits,
                int32_t count,
                std::vector<std::pair<int32_t, float>>& top);

}  // namespace winnow::engine
