// e4m3 to wider formats (sm_89 and up). Every e4m3 value is exact in f16 and in bf16.
#pragma once

#include <cstdint>

namespace winnow::kernels {

// Two e4m3 (low byte first) to two f16.
__device__ __forceinline__ uint32_t e4m3x2_to_f16x2(uint16_t pair) {
  uint32_t out;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(out) : "h"(pair));
  return out;
}
// Four e4m3 to two pairs of f16.
__device__ __forceinline__ void e4m3x4_to_f16x4(uint32_t four, uint32_t& low, uint32_t& high) {
  asm("{\n"
      ".reg .b16 l, h;\n"
      "mov.b32 {l, h}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, l;\n"
      "cvt.rn.f16x2.e4m3x2 %1, h;\n"
      "}\n"
      : "=r"(low), "=r"(high)
      : "r"(four));
}
// Two floats to e4m3, nearest, saturating; `low` goes to the low byte.
__device__ __forceinline__ uint16_t f32x2_to_e4m3x2(float low, float high) {
  uint16_t out;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
}

}  // namespace winnow::kernels
