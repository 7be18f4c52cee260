#include "app/loaded_model.h"

#include <map>
#include <utility>

#include "backends/backends.h"
#include "base/progress.h"

namespace winnow::app {

std::unique_ptr<LoadedModel> load_model(const ServeOptions& options) {
  static const std::map<std::string, layout::IndexKeyLayout> kIndexKeys = {
      {"fp8", layout::IndexKeyLayout::kFp8_132},
      {"bfloat16", layout::IndexKeyLayout::kBf16_256},
      {"float32", layout::IndexKeyLayout::kF32}};
  const auto precision =
      options.precision == "reference" ? model::Precision::kReference : model::Precision::kDefault;
  auto loaded = std::make_unique<LoadedModel>();
  loaded->config = model::load_config(options.model_path);
  loaded->numerics =
      model::choose_numerics(loaded->config, precision,
                             choose_latent_layout(options, loaded->config.quantization.is_fp8()),
                             kIndexKeys.at(options.index_key_dtype));
  loaded->backend = backends::make_cpu(static_cast<int>(options.threads));
  Progress progress;
  loaded->weights = model::load_weights(
      loaded->config, std::make_shared<const model::Checkpoint>(options.model_path),
      *loaded->backend, {.reference_precision = precision == model::Precision::kReference},
      progress);
  return loaded;
}

}  // namespace winnow::app
