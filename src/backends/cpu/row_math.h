// Arithmetic on one row of values in portable code. Sums run in eight lanes, added in a fixed
// order, so that a row's bits do not depend on who computes it.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "layout/float_formats.h"
#include "layout/kv_layout.h"
#include "ops/weights.h"

namespace winnow::backends {

inline constexpr int64_t kLanes = 8;

inline float sum_lanes(const float* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

inline float dot(const float* a, const float* b, int64_t count) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (int64_t l = 0; i + l < count; ++l) lanes[l] += a[i + l] * b[i + l];
  return sum_lanes(lanes);
}

inline void rms_normalize(
    const float* x, const float* weight, int64_t width, float eps, float* out) {
  const float mean = dot(x, x, width) / static_cast<float>(width);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (int64_t i = 0; i < width; ++i) out[i] = x[i] * factor * weight[i];
}

inline float sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}

inline float silu(float x) { return x * sigmoid(x); }

// Values of one weight row without its block scales.
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
    case DType::kE4m3: {
      const uint8_t* data = static_cast<const uint8_t*>(weight.data) + row * n;
      for (int64_t i = 0; i < n; ++i) out[i] = layout::e4m3_to_f32(data[i]);
      return;
    }
    default:
      WINNOW_CHECK(false, "weight dtype {}", to_string(weight.dtype));
  }
}

}  // namespace winnow::backends
