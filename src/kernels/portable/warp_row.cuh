// What the row-at-a-time kernels share: one warp holds one row of values in registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "kernels/cache_writes.h"

namespace winnow::kernels::portable {

// Over groups of kLanes neighbouring lanes.
template <int kLanes>
__device__ inline float group_sum(float x) {
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}
template <int kLanes>
__device__ inline float group_max(float x) {
  for (int step = kLanes / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

__device__ inline float e4m3_scale(float amax) {
  return fmaxf(amax, layout::kAmaxFloor) / layout::kE4m3Max;
}
// Smallest power of two >= value.
__device__ inline float ceil_to_power_of_two(float value) {
  return __uint_as_float((__float_as_uint(value) + 0x7fffffu) & 0x7f800000u);
}
__device__ inline uint8_t to_e4m3(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

template <typename T>
__device__ inline float to_float(T value) {
  return static_cast<float>(value);
}

// kCount values from `from`; by one wide access where the address allows it.
template <int kCount, typename T>
__device__ inline void load_values(const T* from, float (&to)[kCount]) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  if (kBytes % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    constexpr int kVectors = kBytes >= 16 ? kBytes / 16 : 1;
    uint4 raw[kVectors];
#pragma unroll
    for (int i = 0; i < kVectors; ++i) raw[i] = reinterpret_cast<const uint4*>(from)[i];
    const T* values = reinterpret_cast<const T*>(raw);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(values[i]);
  } else if (kBytes == 8 && reinterpret_cast<uintptr_t>(from) % 8 == 0) {
    const uint2 raw = *reinterpret_cast<const uint2*>(from);
    const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(values[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(from[i]);
  }
}

// kBytes bytes to `to`, in words as wide as its alignment allows.
template <int kBytes>
__device__ inline void store_bytes(uint8_t* to, const uint32_t (&words)[(kBytes + 3) / 4]) {
  if constexpr (kBytes % 16 == 0) {
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
#pragma unroll
      for (int i = 0; i < kBytes / 16; ++i) {
        reinterpret_cast<uint4*>(to)[i] =
            make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
      }
      return;
    }
  }
  if constexpr (kBytes == 8) {
    if (reinterpret_cast<uintptr_t>(to) % 8 == 0) {
      *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
      return;
    }
  }
  if constexpr (kBytes == 2) {  // two-byte values lie at even addresses
    *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(words[0]);
  } else {
    if constexpr (kBytes % 4 == 0) {
      if (reinterpret_cast<uintptr_t>(to) % 4 == 0) {
#pragma unroll
        for (int i = 0; i < kBytes / 4; ++i) reinterpret_cast<uint32_t*>(to)[i] = words[i];
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < kBytes; ++i) to[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  }
}

template <int kCount>
__device__ inline void store_f32(uint8_t* to, const float (&v)[kCount]) {
  uint32_t words[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) words[i] = __float_as_uint(v[i]);
  store_bytes<4 * kCount>(to, words);
}
template <int kCount>
__device__ inline void store_bf16(uint8_t* to, const float (&v)[kCount]) {
  uint32_t words[(kCount + 1) / 2] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    words[i / 2] |= uint32_t{__bfloat16_as_ushort(__float2bfloat16_rn(v[i]))} << (16 * (i % 2));
  }
  store_bytes<2 * kCount>(to, words);
}
// value / scale as an IEEE division gives it, for one scale and many values: the quotient by the
// reciprocal, corrected once by its remainder.
__device__ inline float divide(float value, float scale, float reciprocal) {
  const float quotient = value * reciprocal;
  return fmaf(fmaf(-quotient, scale, value), reciprocal, quotient);
}
template <int kCount>
__device__ inline void store_e4m3(uint8_t* to, const float (&v)[kCount], float scale) {
  uint32_t words[(kCount + 3) / 4] = {};
  const float reciprocal = 1.0f / scale;
  if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 pair =
          make_float2(divide(v[i], scale, reciprocal), divide(v[i + 1], scale, reciprocal));
      words[i / 4] |= uint32_t{__nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3)}
                      << (8 * (i % 4));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      words[i / 4] |= uint32_t{to_e4m3(divide(v[i], scale, reciprocal))} << (8 * (i % 4));
    }
  }
  store_bytes<kCount>(to, words);
}

}  // namespace winnow::kernels::portable
