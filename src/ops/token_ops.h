// Arguments of the ops that work on each row by itself: embedding, norms, linears, feed forward.
// "act" is the backend's activation dtype. T rows, H hidden_size, E experts, k experts a token.
#pragma once

#include <cstdint>

#include "ops/weights.h"

namespace winnow::ops {

struct EmbedArgs {
  const int32_t* token_ids = nullptr;  // [T], 0 <= id < vocab_size
  int32_t num_rows = 0;
  LinearWeight table;   // [vocab_size, H], f32, bf16 or f16
  void* out = nullptr;  // act [T, H]
};

// residual += delta (where delta is given), then out = residual * rsqrt(mean(residual^2) + eps) *
// w.
struct RmsNormArgs {
  int32_t num_rows = 0;
  int64_t width = 0;
  void* residual = nullptr;       // act [T, residual_stride]; written only with delta
  int64_t residual_stride = 0;    // elements
  const void* delta = nullptr;    // act [T, width] or null
  const float* weight = nullptr;  // [width]
  float eps = 0;
  void* out = nullptr;  // act [T, width]
};

// y = x * W^T. With an e4m3 weight and fp8_activations, x is quantised per row and 128 channels
// (scale = max(amax, 1e-10) / 448) as the checkpoint was trained for; otherwise x stays as it is.
struct LinearArgs {
  int32_t num_rows = 0;
  const void* x = nullptr;  // act [T, in]
  LinearWeight weight;
  bool fp8_activations = false;
  bool output_f32 = false;  // y is fp32 whatever act is: logits, gates
  void* y = nullptr;        // act or f32 [T, out]
};

// out = down(silu(gate x) * up x); the product is quantised again before down with fp8_activations.
struct MlpArgs {
  int32_t num_rows = 0;
  const void* x = nullptr;  // act [T, H]
  MlpWeights weights;
  bool fp8_activations = false;
  void* out = nullptr;  // act [T, H]
};

// Sigmoid routing with a correction bias. scores = sigmoid(x * W^T) in fp32; choice = score + bias;
// with n_group > 1 the topk_group groups with the largest sum of their two best choices stay;
// the k best choices win (ties: lower expert); weights = score / sum(scores) * scaling.
struct RouteExpertsArgs {
  int32_t num_rows = 0;
  const void* x = nullptr;      // act [T, H]
  LinearWeight gate;            // [E, H]
  const float* bias = nullptr;  // [E] e_score_correction_bias, fp32 (fault B72)
  int32_t n_group = 1;
  int32_t topk_group = 1;
  int32_t num_experts_per_tok = 0;
  bool norm_topk_prob = true;
  float routed_scaling_factor = 1;
  int32_t* expert_ids = nullptr;  // [T, k] ascending by expert
  float* weights = nullptr;       // [T, k]
};

// out[t] = sum over the row's experts of weight * expert(x[t]), plus shared(x[t]) with weight 1.
struct MoeArgs {
  int32_t num_rows = 0;
  const void* x = nullptr;                // act [T, H]
  const int32_t* expert_ids = nullptr;    // [T, k]
  const float* expert_weights = nullptr;  // [T, k]
  int32_t num_experts_per_tok = 0;
  const MlpWeights* experts = nullptr;  // [E]
  int32_t num_experts = 0;
  const MlpWeights* shared = nullptr;  // one, or null
  bool fp8_activations = false;
  void* out = nullptr;  // act [T, H]
};

struct GatherRowsArgs {
  const void* x = nullptr;           // act [any, width]
  const int32_t* row_idx = nullptr;  // [num_rows]
  int32_t num_rows = 0;
  int64_t width = 0;
  void* out = nullptr;  // act [num_rows, width]
};

}  // namespace winnow::ops
