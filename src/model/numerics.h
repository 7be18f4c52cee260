// Which arithmetic a model runs in: the table of ARCHITECTURE.md, "Precision".
#pragma once

#include <cstdint>

#include "kv/kv_storage.h"
#include "layout/kv_layout.h"
#include "model/config.h"
#include "ops/attention_ops.h"

namespace winnow::model {

enum class Precision : uint8_t {
  kDefault,    // what the checkpoint was trained for and servers run
  kReference,  // fp32 throughout: what the fixtures are compared with
};

struct Numerics {
  Precision precision = Precision::kDefault;
  layout::LatentLayout latent_layout = layout::LatentLayout::kBf16_1152;
  layout::IndexKeyLayout index_key_layout = layout::IndexKeyLayout::kFp8_132;
  bool fp8_activations = false;  // e4m3 linears quantise their input per 128 channels
  ops::IndexerNumerics indexer{};
};

// The layouts are the user's choice; kReference overrules them with fp32.
Numerics choose_numerics(const ModelConfig& config,
                         Precision precision,
                         layout::LatentLayout latent_layout,
                         layout::IndexKeyLayout index_key_layout);

// Latent rows for every layer, index keys for the layers that own an indexer.
kv::CachePlan plan_cache(const ModelConfig& config, const Numerics& numerics, int32_t page_size);

}  // namespace winnow::model
