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
__device__ __forceinline__ uint32_t low_e4m3x2_to_f16x2(uint32_t four) {
  return e4m3x2_to_f16x2(static_cast<uint16_t>(four));
}
__device__ __forceinline__ uint32_t high_e4m3x2_to_f16x2(uint32_t four) {
  return e4m3x2_to_f16x2(static_cast<uint16_t>(four >> 16));
}

}  // namespace winnow::kernels
