// The weights of a model as the decoder walks them: plain structs of pointers, one a layer, named
// as the checkpoint names them. On a backend that reads host memory they point into the mapped
// file; elsewhere into the backend's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "ops/backend.h"
#include "ops/weights.h"
#include "tensor/buffer.h"

namespace winnow::model {

// H hidden_size, Nh num_attention_heads, C kv_lora_rank, R qk_rope_head_dim, N qk_nope_head_dim,
// V v_head_dim, Q q_lora_rank, Hi index_n_heads, D index_head_dim, E n_routed_experts.
struct IndexerWeights {
  ops::LinearWeight wq_b;                // [Hi * D, Q]
  ops::LinearWeight wk;                  // [D, H]
  ops::LinearWeight weights_proj;        // [Hi, H]
  const float* k_norm_weight = nullptr;  // [D]
  const float* k_norm_bias = nullptr;    // [D]
};

struct MoeWeights {
  ops::LinearWeight gate;                          // [E, H]
  const float* e_score_correction_bias = nullptr;  // [E], fp32 whatever the file holds (fault B72)
  std::vector<ops::MlpWeights> experts;            // [E]
  std::optional<ops::MlpWeights> shared_experts;
};

struct LayerWeights {
  const float* input_layernorm = nullptr;  // [H]
  ops::LinearWeight q_a_proj;              // [Q, H]
  const float* q_a_layernorm = nullptr;    // [Q]
  ops::LinearWeight q_b_proj;              // [Nh * (N + R), Q], per head nope then rope
  ops::LinearWeight kv_a_proj_with_mqa;    // [C + R, H], latent then rope
  const float* kv_a_layernorm = nullptr;   // [C]
  ops::LinearWeight w_uk;                  // [Nh * C, N] per head kv_b's nope rows, transposed
  ops::LinearWeight w_uv;                  // [Nh * V, C] per head kv_b's value rows
  ops::LinearWeight o_proj;                // [H, Nh * V]
  std::optional<IndexerWeights> indexer;   // where LayerConfig::owns_indexer
  const float* post_attention_layernorm = nullptr;  // [H]
  std::optional<ops::MlpWeights> mlp;               // dense layers
  std::optional<MoeWeights> moe;                    // MoE layers
  // latent_fp8_576: the checkpoint's scale of the cached row, 1 where it has none.
  float latent_cache_scale = 1.0f;
};

struct ModelWeights {
  ops::LinearWeight embed_tokens;  // [vocab_size, H]
  std::vector<LayerWeights> layers;
  const float* norm = nullptr;  // [H]
  ops::LinearWeight lm_head;    // [vocab_size, H]; embed_tokens when tied

  int64_t mapped_bytes = 0;  // read in place from the files
  int64_t copied_bytes = 0;  // in buffers

  std::shared_ptr<const Checkpoint> checkpoint;  // keeps the mapping alive
  std::vector<Buffer> buffers;
};

struct LoadOptions {
  // --precision reference: kv_b's halves in fp32 instead of bf16 (of FP8 checkpoints; others keep
  // their own type).
  bool reference_precision = false;
};

// Throws Error naming file and tensor when one is missing or has the wrong shape, dtype or scale.
// Tensors nobody asked for are logged as a warning.
ModelWeights load_weights(const ModelConfig& config,
                          std::shared_ptr<const Checkpoint> checkpoint,
                          ops::Backend& backend,
                          const LoadOptions& options,
                          Progress& progress);

}  // namespace winnow::model
