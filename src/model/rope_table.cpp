#include "model/rope_table.h"

#include <cmath>

namespace winnow::model {

RopeTables::RopeTables(const ModelConfig& config, int32_t max_positions, ops::Backend& backend)
    : dim_(config.qk_rope_head_dim) {
  const std::vector<float> frequencies = inverse_frequencies(config.rope_parameters, dim_);
  const float amplitude = rope_amplitude(config.rope_parameters);
  const size_t half = frequencies.size();
  std::vector<float> cos(max_positions * half), sin(max_positions * half);
  for (int32_t position = 0; position < max_positions; ++position) {
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      cos[position * half + i] = std::cos(angle) * amplitude;
      sin[position * half + i] = std::sin(angle) * amplitude;
    }
  }
  const auto bytes = static_cast<int64_t>(cos.size() * sizeof(float));
  cos_ = backend.allocate(bytes);
  sin_ = backend.allocate(bytes);
  backend.upload(cos_.data(), cos.data(), bytes);
  backend.upload(sin_.data(), sin.data(), bytes);
}

}  // namespace winnow::model
