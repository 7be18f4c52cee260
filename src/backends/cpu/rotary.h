// Rotation and Hadamard transform of one head, in place, fp32.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/attention_ops.h"

namespace winnow::backends {

// Rotates values[0..dim): pairs (2i, 2i + 1), natural order kept.
inline void rotate_interleaved(float* values, const ops::RopeTable& rope, int64_t position) {
  const int64_t half = rope.dim / 2;
  const float* cos = rope.cos + position * half;
  const float* sin = rope.sin + position * half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = values[2 * i], b = values[2 * i + 1];
    values[2 * i] = a * cos[i] - b * sin[i];
    values[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

// Rotates values[0..dim): pairs (i, i + dim / 2).
inline void rotate_half_split(float* values, const ops::RopeTable& rope, int64_t position) {
  const int64_t half = rope.dim / 2;
  const float* cos = rope.cos + position * half;
  const float* sin = rope.sin + position * half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = values[i], b = values[i + half];
    values[i] = a * cos[i] - b * sin[i];
    values[i + half] = b * cos[i] + a * sin[i];
  }
}

// values = H * values * dim^-0.5, H the natural-order Sylvester matrix; dim a power of two.
inline void hadamard_transform(float* values, int64_t dim) {
  for (int64_t step = 1; step < dim; step *= 2) {
    for (int64_t begin = 0; begin < dim; begin += 2 * step) {
      for (int64_t i = begin; i < begin + step; ++i) {
        const float a = values[i], b = values[i + step];
        values[i] = a + b;
        values[i + step] = a - b;
      }
    }
  }
  const float norm = 1.0f / std::sqrt(static_cast<float>(dim));
  for (int64_t i = 0; i < dim; ++i) values[i] *= norm;
}

}  // namespace winnow::backends
