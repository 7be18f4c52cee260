#include "model/decoder.h"

#include <vector>

#include "base/error.h"
#include "base/trace.h"
#include "layout/float_formats.h"
#include "model/mla_attention.h"

namespace winnow::model {

ops::ModelShape shape_of(const ModelConfig& config,
                         const kv::CachePlan& cache_plan,
                         const Numerics& numerics,
                         const DecoderLimits& limits) {
  return {.hidden_size = config.hidden_size,
          .vocab_size = config.vocab_size,
          .num_attention_heads = config.num_attention_heads,
          .q_lora_rank = config.q_lora_rank,
          .kv_lora_rank = config.kv_lora_rank,
          .qk_nope_head_dim = config.qk_nope_head_dim,
          .qk_rope_head_dim = config.qk_rope_head_dim,
          .v_head_dim = config.v_head_dim,
          .index_n_heads = config.index_n_heads,
          .index_head_dim = config.index_head_dim,
          .index_topk = config.index_topk,
          .intermediate_size = config.intermediate_size,
          .moe_intermediate_size = config.moe_intermediate_size,
          .n_routed_experts = config.n_routed_experts,
          .num_experts_per_tok = config.num_experts_per_tok,
          .latent_layout = cache_plan.latent.layout,
          .index_key_layout = cache_plan.index_key.layout,
          .index_query_format = numerics.indexer.query_format,
          .page_size = cache_plan.latent.page_size,
          .max_rows = limits.max_rows,
          .max_context = limits.max_context};
}

Decoder::Decoder(const ModelConfig& config,
                 const Numerics& numerics,
                 const ModelWeights& weights,
                 const kv::CachePlan& cache_plan,
                 const DecoderLimits& limits,
                 ops::Backend& backend)
    : config_(config),
      numerics_(numerics),
      weights_(weights),
      limits_(limits),
      backend_(backend),
      rope_(config, limits.max_context, backend),
      workspace_(config, limits.max_rows, limits.max_logit_rows, backend) {
  backend_.prepare(shape_of(config, cache_plan, numerics, limits));
}

void Decoder::add_norm(int32_t num_rows, bool with_delta, const float* weight) {
  backend_.rms_norm({.num_rows = num_rows,
                     .width = config_.hidden_size,
                     .residual = workspace_.residual.data(),
                     .residual_stride = config_.hidden_size,
                     .delta = with_delta ? workspace_.delta.data() : nullptr,
                     .weight = weight,
                     .eps = config_.rms_norm_eps,
                     .out = workspace_.normed.data()});
}

void Decoder::run_feed_forward(int32_t layer, int32_t num_rows) {
  const LayerWeights& weights = weights_.layers[layer];
  if (weights.mlp) {
    const trace::Span span("mlp", layer);
    backend_.mlp({.num_rows = num_rows,
                  .x = workspace_.normed.data(),
                  .weights = *weights.mlp,
                  .fp8_activations = numerics_.fp8_activations,
                  .out = workspace_.delta.data()});
    return;
  }
  const trace::Span span("moe", layer);
  const MoeWeights& moe = *weights.moe;
  backend_.route_experts({.num_rows = num_rows,
                          .x = workspace_.normed.data(),
                          .gate = moe.gate,
                          .bias = moe.e_score_correction_bias,
                          .n_group = config_.n_group,
                          .topk_group = config_.topk_group,
                          .num_experts_per_tok = config_.num_experts_per_tok,
                          .norm_topk_prob = config_.norm_topk_prob,
                          .routed_scaling_factor = config_.routed_scaling_factor,
                          .expert_ids = workspace_.expert_ids.as<int32_t>(),
                          .weights = workspace_.expert_weights.as<float>()});
  backend_.moe({.num_rows = num_rows,
                .x = workspace_.normed.data(),
                .expert_ids = workspace_.expert_ids.as<int32_t>(),
                .expert_weights = workspace_.expert_weights.as<float>(),
                .num_experts_per_tok = config_.num_experts_per_tok,
                .experts = moe.experts.data(),
                .num_experts = static_cast<int32_t>(moe.experts.size()),
                .shared = moe.shared_experts ? &*moe.shared_experts : nullptr,
                .fp8_activations = numerics_.fp8_activations,
                .out = workspace_.delta.data()});
}

void Decoder::forward(const ops::BatchRows& rows,
                      const kv::KvStorage& storage,
                      StepObserver* observer) {
  WINNOW_CHECK(rows.num_rows >= 1 && rows.num_rows <= limits_.max_rows, "rows {} of {}",
               rows.num_rows, limits_.max_rows);
  const StepContext step{config_, numerics_, backend_, workspace_, storage, rope_.view(), rows};
  const int32_t num_rows = rows.num_rows;
  backend_.embed({.token_ids = rows.token_ids,
                  .num_rows = num_rows,
                  .table = weights_.embed_tokens,
                  .out = workspace_.residual.data()});
  for (int32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    const LayerWeights& weights = weights_.layers[layer];
    // The residual takes in the last feed forward's output together with the next norm.
    if (observer != nullptr) show_hidden(*observer, layer, num_rows, layer > 0);
    add_norm(num_rows, layer > 0, weights.input_layernorm);
    run_mla_attention(step, layer, weights);
    if (observer != nullptr && weights.indexer) show_topk(*observer, layer, num_rows);
    add_norm(num_rows, true, weights.post_attention_layernorm);
    run_feed_forward(layer, num_rows);
  }
  add_norm(num_rows, true, weights_.norm);
  if (observer != nullptr) {
    show_hidden(*observer, config_.num_hidden_layers, num_rows, false);
  }
}

const float* Decoder::logits(const int32_t* row_idx, int32_t num_rows) {
  WINNOW_CHECK(num_rows >= 1 && num_rows <= limits_.max_logit_rows, "logit rows {} of {}", num_rows,
               limits_.max_logit_rows);
  const trace::Span span("lm_head");
  backend_.gather_rows({.x = workspace_.normed.data(),
                        .row_idx = row_idx,
                        .num_rows = num_rows,
                        .width = config_.hidden_size,
                        .out = workspace_.logit_input.data()});
  backend_.linear({.num_rows = num_rows,
                   .x = workspace_.logit_input.data(),
                   .weight = weights_.lm_head,
                   .output_f32 = true,
                   .y = workspace_.logits.data()});
  return workspace_.logits.as<float>();
}

namespace {

// Activations of the backend's dtype to host fp32.
std::vector<float> to_host(ops::Backend& backend, const Buffer& from, int64_t count) {
  std::vector<float> values(count);
  if (backend.activation_dtype() == DType::kF32) {
    backend.download(values.data(), from.data(), count * 4);
    return values;
  }
  std::vector<uint16_t> bits(count);
  backend.download(bits.data(), from.data(), count * 2);
  for (int64_t i = 0; i < count; ++i) values[i] = layout::bf16_to_f32(bits[i]);
  return values;
}

}  // namespace

void Decoder::show_hidden(StepObserver& observer, int32_t idx, int32_t num_rows, bool with_delta) {
  const int64_t count = int64_t{num_rows} * config_.hidden_size;
  const bool is_final = idx == config_.num_hidden_layers;
  std::vector<float> hidden =
      to_host(backend_, is_final ? workspace_.normed : workspace_.residual, count);
  if (with_delta) {
    const std::vector<float> delta = to_host(backend_, workspace_.delta, count);
    for (int64_t i = 0; i < count; ++i) hidden[i] += delta[i];
  }
  observer.on_hidden(idx, hidden);
}

void Decoder::show_topk(StepObserver& observer, int32_t layer, int32_t num_rows) {
  std::vector<int32_t> slots(int64_t{num_rows} * config_.index_topk);
  backend_.download(slots.data(), workspace_.slots.data(), static_cast<int64_t>(slots.size()) * 4);
  observer.on_topk(layer, slots);
}

}  // namespace winnow::model
