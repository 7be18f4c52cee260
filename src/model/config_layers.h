// The per-layer table: which layers are MoE, which own an indexer, whose top-k each one uses.
#pragma once

#include <vector>

#include "model/config.h"
#include "model/config_keys.h"

namespace winnow::model {

// config has the plain fields already. Throws Error when layer 0 would have no top-k (fault B10).
std::vector<LayerConfig> read_layer_table(const ConfigKeys& keys, const ModelConfig& config);

}  // namespace winnow::model
