// A checkpoint made ready to run: what serve, generate, score and bench offline have in common.
#pragma once

#include <memory>

#include "app/options.h"
#include "model/config.h"
#include "model/numerics.h"
#include "model/weights.h"
#include "ops/backend.h"

namespace winnow::app {

struct LoadedModel {
  model::ModelConfig config;
  std::unique_ptr<ops::Backend> backend;
  model::ModelWeights weights;
  model::Numerics numerics;
};

// Throws Error with one clear line.
std::unique_ptr<LoadedModel> load_model(const ServeOptions& options);

}  // namespace winnow::app
