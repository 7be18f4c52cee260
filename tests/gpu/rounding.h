// Whether a stored code is the nearest of its format to an exact value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "layout/float_formats.h"

namespace winnow::gpu_check {

inline float f32_at(const uint8_t* from) {
  float value;
  std::memcpy(&value, from, 4);
  return value;
}

// value within half a step of e4m3 or bf16 (or nearly equal for fp32) of want.
inline bool close_e4m3(uint8_t code, float scale, double want) {
  const double got = static_cast<double>(layout::e4m3_to_f32(code)) * static_cast<double>(scale);
  return std::fabs(got - want) <=
         std::max(std::fabs(want) * 0x1.01p-4, static_cast<double>(scale) * 0x1.01p-10);
}
inline bool close_bf16(const uint8_t* from, double want) {
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return std::fabs(static_cast<double>(layout::bf16_to_f32(bits)) - want) <=
         std::fabs(want) * 0x1.02p-8 + 1e-6;
}
inline bool close_f32(const uint8_t* from, double want) {
  return std::fabs(static_cast<double>(f32_at(from)) - want) <= std::fabs(want) * 1e-5 + 1e-5;
}
inline bool close_scale(float scale, double amax, bool ue8m0 = false) {
  const double want = std::max(amax, 1e-4) / 448;
  if (!ue8m0) return std::fabs(static_cast<double>(scale) - want) <= want * 1e-5;
  return scale > 0 && std::exp2(std::round(std::log2(scale))) == scale &&
         scale >= want * (1 - 1e-5) && scale <= 2 * want * (1 + 1e-5);
}

inline double largest(const std::vector<double>& v, size_t begin, size_t end) {
  double most = 0;
  for (size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(v[i]));
  return most;
}

}  // namespace winnow::gpu_check
