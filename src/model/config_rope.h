// Rotary position parameters, from either spelling of config.json, and what follows from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow::model {

struct RopeParameters {
  std::string rope_type = "default";  // or "yarn"
  double rope_theta = 0;
  // yarn only:
  double factor = 1;
  int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 0;            // 0: absent
  double mscale_all_dim = 0;    // 0: absent
  double attention_factor = 0;  // 0: absent, follows from the mscales
  bool truncate = true;         // whole numbers as the borders of the ramp

  bool is_yarn() const { return rope_type == "yarn"; }
};

// [dim / 2] angles a position advances by, yarn's ramp applied.
std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t dim);

// What cos and sin are multiplied with. 1 for every known checkpoint.
float rope_amplitude(const RopeParameters& rope);

// What yarn multiplies the softmax scale with: (0.1 * mscale_all_dim * ln(factor) + 1)^2, else 1.
double softmax_scale_correction(const RopeParameters& rope);

}  // namespace winnow::model
