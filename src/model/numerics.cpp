#include "model/numerics.h"

#include "base/error.h"

namespace winnow::model {

Numerics choose_numerics(const ModelConfig& config,
                         Precision precision,
                         layout::LatentLayout latent_layout,
                         layout::IndexKeyLayout index_key_layout) {
  Numerics numerics{
      .precision = precision, .latent_layout = latent_layout, .index_key_layout = index_key_layout};
  numerics.indexer.rope_interleave = config.indexer_rope_interleave;
  if (precision == Precision::kReference) {
    numerics.latent_layout = layout::LatentLayout::kF32;
    numerics.index_key_layout = layout::IndexKeyLayout::kF32;
  } else {
    numerics.fp8_activations = config.quantization.is_fp8();
    numerics.indexer.hadamard = config.indexer_hadamard;
    numerics.indexer.ue8m0_scales = config.indexer_ue8m0_scales;
  }
  if (!config.has_indexer()) numerics.index_key_layout = layout::IndexKeyLayout::kNone;
  switch (numerics.index_key_layout) {
    case layout::IndexKeyLayout::kNone:
    case layout::IndexKeyLayout::kF32:
      numerics.indexer.query_format = ops::IndexFormat::kF32;
      break;
    case layout::IndexKeyLayout::kBf16_256:
      numerics.indexer.query_format = ops::IndexFormat::kBf16;
      break;
    case layout::IndexKeyLayout::kFp8_132:
      numerics.indexer.query_format = ops::IndexFormat::kFp8;
      break;
  }
  return numerics;
}

kv::CachePlan plan_cache(const ModelConfig& config, const Numerics& numerics, int32_t page_size) {
  kv::CachePlan plan;
  plan.latent = {.layout = numerics.latent_layout,
                 .kv_lora_rank = config.kv_lora_rank,
                 .qk_rope_head_dim = config.qk_rope_head_dim,
                 .page_size = page_size};
  plan.index_key = {.layout = numerics.index_key_layout,
                    .index_head_dim = config.index_head_dim,
                    .page_size = page_size};
  for (const LayerConfig& layer : config.layers) plan.owns_indexer.push_back(layer.owns_indexer);
  return plan;
}

}  // namespace winnow::model
