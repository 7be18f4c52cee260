#include "model/config_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace winnow::model {

namespace {

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// The dimension whose wave turns `rotations` times within the original context.
double yarn_border(const RopeParameters& rope, double dim, double rotations) {
  const double wavelength = static_cast<double>(rope.original_max_position_embeddings) /
                            (rotations * 2 * std::numbers::pi);
  return dim * std::log(wavelength) / (2 * std::log(rope.rope_theta));
}

}  // namespace

std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t dim) {
  const auto d = static_cast<double>(dim);
  double low = 0, high = 0;
  if (rope.is_yarn()) {
    low = yarn_border(rope, d, rope.beta_fast);
    high = yarn_border(rope, d, rope.beta_slow);
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, d - 1);
    if (low == high) high += 0.001;
  }
  std::vector<float> frequencies;
  for (int64_t i = 0; i < dim / 2; ++i) {
    const auto index = static_cast<double>(i);
    double frequency = std::pow(rope.rope_theta, -2 * index / d);
    if (rope.is_yarn()) {
      const double ramp = std::clamp((index - low) / (high - low), 0.0, 1.0);
      frequency = frequency / rope.factor * ramp + frequency * (1 - ramp);
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

float rope_amplitude(const RopeParameters& rope) {
  if (!rope.is_yarn()) return 1.0f;
  if (rope.attention_factor != 0) return static_cast<float>(rope.attention_factor);
  if (rope.mscale != 0 && rope.mscale_all_dim != 0) {
    return static_cast<float>(yarn_mscale(rope.factor, rope.mscale) /
                              yarn_mscale(rope.factor, rope.mscale_all_dim));
  }
  return static_cast<float>(yarn_mscale(rope.factor, 1.0));
}

double softmax_scale_correction(const RopeParameters& rope) {
  if (!rope.is_yarn() || rope.mscale_all_dim == 0) return 1.0;
  const double scale = yarn_mscale(rope.factor, rope.mscale_all_dim);
  return scale * scale;
}

}  // namespace winnow::model
