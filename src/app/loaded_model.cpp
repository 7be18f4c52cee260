#include "app/loaded_model.h"

#include <map>
#include <utility>

#include "backends/backends.h"
#include "base/progress.h"

namespace winnow::app {

using layout::IndexKeyLayout;
using layout::LatentLayout;

void add_model_options(CLI::App& app, ModelOptions& options) {
  static const std::map<std::string, model::Precision> kPrecisions = {
      {"default", model::Precision::kDefault}, {"reference", model::Precision::kReference}};
  static const std::map<std::string, IndexKeyLayout> kIndexKeys = {
      {"fp8", IndexKeyLayout::kFp8_132},
      {"bfloat16", IndexKeyLayout::kBf16_256},
      {"float32", IndexKeyLayout::kF32}};
  app.add_option("--model-path", options.model_path, "Checkpoint folder")->required();
  app.add_option("--threads", options.threads, "Worker threads; 0 = one for each core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--precision", options.precision, "default: as served. reference: fp32 throughout")
      ->transform(CLI::CheckedTransformer(kPrecisions));
  app.add_option("--index-key-dtype", options.index_key_layout, "Element type of cached index keys")
      ->transform(CLI::CheckedTransformer(kIndexKeys));
}

std::unique_ptr<LoadedModel> load_model(const ModelOptions& options) {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->config = model::load_config(options.model_path);
  const LatentLayout by_checkpoint =
      loaded->config.quantization.is_fp8() ? LatentLayout::kFp8_656 : LatentLayout::kBf16_1152;
  loaded->numerics = model::choose_numerics(loaded->config, options.precision,
                                            options.latent_layout.value_or(by_checkpoint),
                                            options.index_key_layout);
  loaded->backend = backends::make_cpu(options.threads);
  Progress progress;
  loaded->weights = model::load_weights(
      loaded->config, std::make_shared<const model::Checkpoint>(options.model_path),
      *loaded->backend, {.reference_precision = options.precision == model::Precision::kReference},
      progress);
  return loaded;
}

}  // namespace winnow::app
