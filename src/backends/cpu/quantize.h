// e4m3 rounding of a group of values with one fp32 scale: scale = max(amax, floor) / 448,
// code = e4m3(value / scale). The division is part of the contract of the caches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "layout/float_formats.h"
#include "layout/kv_layout.h"

namespace winnow::backends {

// Scale of count values; NaN values do not raise it (they become NaN codes).
inline float e4m3_scale(const float* values, int64_t count, float amax_floor) {
  float amax = amax_floor;
  for (int64_t i = 0; i < count; ++i) amax = std::max(amax, std::fabs(values[i]));
  return amax / layout::kE4m3Max;
}

inline void quantize_e4m3(const float* values, int64_t count, float scale, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) codes[i] = layout::f32_to_e4m3(values[i] / scale);
}

}  // namespace winnow::backends
