// Small arithmetic on one row, outside the loops that matter for speed.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "layout/float_formats.h"
#include "ops/weights.h"

namespace winnow::backends {

inline float sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}

// Values of one row of an unscaled table.
inline void decode_weight_row(const ops::LinearWeight& weight, int64_t row, float* out) {
  const int64_t n = weight.in_features;
  switch (weight.dtype) {
    case DType::kF32: {
      const float* data = static_cast<const float*>(weight.data) + row * n;
      for (int64_t i = 0; i < n; ++i) out[i] = data[i];
      return;
    }
    case DType::kBf16: {
      const uint16_t* data = static_cast<const uint16_t*>(weight.data) + row * n;
      for (int64_t i = 0; i < n; ++i) out[i] = layout::bf16_to_f32(data[i]);
      return;
    }
    case DType::kF16: {
      const uint16_t* data = static_cast<const uint16_t*>(weight.data) + row * n;
      for (int64_t i = 0; i < n; ++i) out[i] = layout::f16_to_f32(data[i]);
      return;
    }
    default:
      WINNOW_CHECK(false, "weight dtype {}", to_string(weight.dtype));
  }
}

}  // namespace winnow::backends
