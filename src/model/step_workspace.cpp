#include "model/step_workspace.h"

namespace winnow::model {

StepWorkspace::StepWorkspace(const ModelConfig& config,
                             int32_t max_rows,
                             int32_t max_logit_rows,
                             ops::Backend& backend) {
  const int64_t rows = max_rows, heads = config.num_attention_heads;
  const int64_t act = bytes_of(backend.activation_dtype());
  const int64_t index_width = int64_t{config.index_n_heads} * config.index_head_dim;
  const auto activations = [&](int64_t elements) { return backend.allocate(elements * act); };
  const auto words = [&](int64_t elements) { return backend.allocate(elements * 4); };

  residual = activations(rows * config.hidden_size);
  normed = activations(rows * config.hidden_size);
  delta = activations(rows * config.hidden_size);
  q_a = activations(rows * config.q_lora_rank);
  q_a_normed = activations(rows * config.q_lora_rank);
  kv = activations(rows * (config.kv_lora_rank + config.qk_rope_head_dim));
  q = activations(rows * heads * (config.qk_nope_head_dim + config.qk_rope_head_dim));
  q_latent = activations(rows * heads * config.kv_lora_rank);
  q_rope = activations(rows * heads * config.qk_rope_head_dim);
  out_latent = activations(rows * heads * config.kv_lora_rank);
  attention = activations(rows * heads * config.v_head_dim);
  if (config.has_indexer()) {
    index_q_raw = activations(rows * index_width);
    index_q = words(rows * index_width);
    index_k = activations(rows * config.index_head_dim);
    index_gates = words(rows * config.index_n_heads);
    head_weights = words(rows * config.index_n_heads);
    slots = words(rows * config.index_topk);
    lens = words(rows);
  }
  if (config.n_routed_experts > 0) {
    expert_ids = words(rows * config.num_experts_per_tok);
    expert_weights = words(rows * config.num_experts_per_tok);
  }
  logit_input = activations(int64_t{max_logit_rows} * config.hidden_size);
  logits = words(int64_t{max_logit_rows} * config.vocab_size);
}

int64_t StepWorkspace::bytes() const {
  int64_t total = 0;
  for (const Buffer* buffer :
       {&residual,   &normed,         &delta,       &q_a,          &q_a_normed, &kv,
        &q,          &q_latent,       &q_rope,      &out_latent,   &attention,  &index_q_raw,
        &index_q,    &index_k,        &index_gates, &head_weights, &slots,      &lens,
        &expert_ids, &expert_weights, &logit_input, &logits}) {
    total += buffer->bytes();
  }
  return total;
}

}  // namespace winnow::model
