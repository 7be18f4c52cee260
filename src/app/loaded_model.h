// A checkpoint made ready to run: what serve, generate, score and bench offline have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>

#include "model/config.h"
#include "model/numerics.h"
#include "model/weights.h"
#include "ops/backend.h"

namespace winnow::app {

struct ModelOptions {
  std::string model_path;
  int threads = 0;  // 0: one for each core
  model::Precision precision = model::Precision::kDefault;
  // Nothing: fp8 for FP8 checkpoints, bf16 for others.
  std::optional<layout::LatentLayout> latent_layout;
  layout::IndexKeyLayout index_key_layout = layout::IndexKeyLayout::kFp8_132;
};

struct LoadedModel {
  model::ModelConfig config;
  std::unique_ptr<ops::Backend> backend;
  model::ModelWeights weights;
  model::Numerics numerics;
};

// The options that name a model and its arithmetic, the same for every subcommand.
void add_model_options(CLI::App& app, ModelOptions& options);

// Throws Error with one clear line.
std::unique_ptr<LoadedModel> load_model(const ModelOptions& options);

}  // namespace winnow::app
