// One layer's attention: projections, cache append, token selection, absorbed MLA, output.
#pragma once

#include "kv/kv_storage.h"
#include "model/config.h"
#include "model/numerics.h"
#include "model/step_workspace.h"
#include "model/weights.h"
#include "ops/backend.h"

namespace winnow::model {

// What all layers of one step share.
struct StepContext {
  const ModelConfig& config;
  const Numerics& numerics;
  ops::Backend& backend;
  StepWorkspace& workspace;
  const kv::KvStorage& storage;
  ops::RopeTable rope;
  const ops::BatchRows& rows;
};

// workspace.normed -> workspace.delta. Layers without an indexer of their own use the slots that
// the nearest full layer below left in the workspace.
void run_mla_attention(const StepContext& step, int32_t layer, const LayerWeights& weights);

}  // namespace winnow::model
