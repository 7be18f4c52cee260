#include "model/mla_attention.h"

#include "base/trace.h"
#include "model/cache_views.h"

namespace winnow::model {

namespace {

void linear(const StepContext& step,
            const void* x,
            const ops::LinearWeight& weight,
            void* y,
            bool output_f32 = false) {
  step.backend.linear({.num_rows = step.rows.num_rows,
                       .x = x,
                       .weight = weight,
                       .fp8_activations = step.numerics.fp8_activations,
                       .output_f32 = output_f32,
                       .y = y});
}

void project_and_append(const StepContext& step, int32_t layer, const LayerWeights& weights) {
  const ModelConfig& config = step.config;
  StepWorkspace& ws = step.workspace;
  linear(step, ws.normed.data(), weights.q_a_proj, ws.q_a.data());
  linear(step, ws.normed.data(), weights.kv_a_proj_with_mqa, ws.kv.data());
  step.backend.append_latent(
      {.rows = &step.rows,
       .kv = ws.kv.data(),
       .norm_weight = weights.kv_a_layernorm,
       .norm_eps = config.rms_norm_eps,
       .rope = step.rope,
       .cache = latent_cache(step.storage, layer, weights.latent_cache_scale)});
  step.backend.rms_norm({.num_rows = step.rows.num_rows,
                         .width = config.q_lora_rank,
                         .residual = ws.q_a.data(),
                         .residual_stride = config.q_lora_rank,
                         .weight = weights.q_a_layernorm,
                         .eps = config.rms_norm_eps,
                         .out = ws.q_a_normed.data()});
  linear(step, ws.q_a_normed.data(), weights.q_b_proj, ws.q.data());
  step.backend.absorb_query({.rows = &step.rows,
                             .q = ws.q.data(),
                             .w_uk = weights.w_uk,
                             .rope = step.rope,
                             .num_heads = config.num_attention_heads,
                             .qk_nope_head_dim = config.qk_nope_head_dim,
                             .q_latent = ws.q_latent.data(),
                             .q_rope = ws.q_rope.data()});
}

void select_tokens(const StepContext& step, int32_t layer, const IndexerWeights& weights) {
  const ModelConfig& config = step.config;
  StepWorkspace& ws = step.workspace;
  const ops::IndexKeyCache cache = index_key_cache(step.storage, layer);
  linear(step, ws.q_a_normed.data(), weights.wq_b, ws.index_q_raw.data());
  linear(step, ws.normed.data(), weights.wk, ws.index_k.data());
  linear(step, ws.normed.data(), weights.weights_proj, ws.index_gates.data(), true);
  step.backend.append_index_key({.rows = &step.rows,
                                 .k = ws.index_k.data(),
                                 .norm_weight = weights.k_norm_weight,
                                 .norm_bias = weights.k_norm_bias,
                                 .rope = step.rope,
                                 .numerics = step.numerics.indexer,
                                 .cache = cache});
  step.backend.index_query({.rows = &step.rows,
                            .q = ws.index_q_raw.data(),
                            .gates = ws.index_gates.as<float>(),
                            .rope = step.rope,
                            .numerics = step.numerics.indexer,
                            .index_n_heads = config.index_n_heads,
                            .index_head_dim = config.index_head_dim,
                            .q_out = ws.index_q.data(),
                            .head_weights = ws.head_weights.as<float>()});
  const trace::Span span("select_tokens", layer);
  step.backend.select_tokens({.rows = &step.rows,
                              .q = ws.index_q.data(),
                              .query_format = step.numerics.indexer.query_format,
                              .head_weights = ws.head_weights.as<float>(),
                              .index_n_heads = config.index_n_heads,
                              .cache = cache,
                              .topk = config.index_topk,
                              .slots = ws.slots.as<int32_t>(),
                              .lens = ws.lens.as<int32_t>()});
}

void attend(const StepContext& step, int32_t layer, const LayerWeights& weights) {
  const ModelConfig& config = step.config;
  StepWorkspace& ws = step.workspace;
  if (!config.has_indexer()) {
    const trace::Span span("dense_mla", layer);
    step.backend.dense_mla({.rows = &step.rows,
                            .q_latent = ws.q_latent.data(),
                            .q_rope = ws.q_rope.data(),
                            .num_heads = config.num_attention_heads,
                            .softmax_scale = config.softmax_scale,
                            .cache = latent_cache(step.storage, layer, weights.latent_cache_scale),
                            .out = ws.out_latent.data()});
    return;
  }
  const trace::Span span("sparse_mla", layer);
  step.backend.sparse_mla({.rows = &step.rows,
                           .q_latent = ws.q_latent.data(),
                           .q_rope = ws.q_rope.data(),
                           .slots = ws.slots.as<int32_t>(),
                           .lens = ws.lens.as<int32_t>(),
                           .slots_stride = config.index_topk,
                           .num_heads = config.num_attention_heads,
                           .softmax_scale = config.softmax_scale,
                           .cache = latent_cache(step.storage, layer, weights.latent_cache_scale),
                           .out = ws.out_latent.data()});
}

}  // namespace

void run_mla_attention(const StepContext& step, int32_t layer, const LayerWeights& weights) {
  StepWorkspace& ws = step.workspace;
  {
    const trace::Span span("mla_projections", layer);
    project_and_append(step, layer, weights);
  }
  if (weights.indexer) {
    const trace::Span span("indexer", layer);
    select_tokens(step, layer, *weights.indexer);
  }
  attend(step, layer, weights);
  const trace::Span span("mla_output", layer);
  step.backend.up_project({.num_rows = step.rows.num_rows,
                           .latent = ws.out_latent.data(),
                           .w_uv = weights.w_uv,
                           .num_heads = step.config.num_attention_heads,
                           .out = ws.attention.data()});
  linear(step, ws.attention.data(), weights.o_proj, ws.delta.data());
}

}  // namespace winnow::model
