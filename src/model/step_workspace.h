// Every activation buffer of a step, allocated once for the largest step.
// T max_rows, H num_attention_heads; the element type is the backend's activation dtype.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "ops/backend.h"

namespace winnow::model {

struct StepWorkspace {
  StepWorkspace(const ModelConfig& config,
                int32_t max_rows,
                int32_t max_logit_rows,
                ops::Backend& backend);
  int64_t bytes() const;

  Buffer residual;        // [T, hidden_size]
  Buffer normed;          // [T, hidden_size] input of attention, feed forward and head
  Buffer delta;           // [T, hidden_size] output of attention or feed forward
  Buffer q_a;             // [T, q_lora_rank]
  Buffer q_a_normed;      // [T, q_lora_rank]
  Buffer kv;              // [T, kv_lora_rank + qk_rope_head_dim]
  Buffer q;               // [T, H, qk_head_dim]
  Buffer q_latent;        // [T, H, kv_lora_rank]
  Buffer q_rope;          // [T, H, qk_rope_head_dim]
  Buffer out_latent;      // [T, H, kv_lora_rank]
  Buffer attention;       // [T, H * v_head_dim]
  Buffer index_q_raw;     // [T, index_n_heads, index_head_dim]
  Buffer index_q;         // the same, rotated and rounded; fp32 at most
  Buffer index_k;         // [T, index_head_dim]
  Buffer index_gates;     // [T, index_n_heads] fp32
  Buffer head_weights;    // [T, index_n_heads] fp32
  Buffer slots;           // [T, index_topk] int32, kept from a full layer to the shared ones above
  Buffer lens;            // [T] int32
  Buffer expert_ids;      // [T, num_experts_per_tok] int32
  Buffer expert_weights;  // [T, num_experts_per_tok] fp32
  Buffer logit_input;     // [max_logit_rows, hidden_size]
  Buffer logits;          // [max_logit_rows, vocab_size] fp32
};

}  // namespace winnow::model
