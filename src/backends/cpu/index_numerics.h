// How one head of an index query or an index key is rotated, mixed and scaled before rounding.
#pragma once

#include <cstdint>

#include "backends/cpu/quantize.h"
#include "backends/cpu/rotary.h"
#include "base/error.h"
#include "layout/float_formats.h"
#include "ops/attention_ops.h"

namespace winnow::backends {

inline constexpr int64_t kMaxIndexHeadDim = 256;

inline void check_numerics(const ops::IndexerNumerics& numerics,
                           const ops::RopeTable& rope,
                           int64_t dim) {
  WINNOW_CHECK(rope.dim <= dim && rope.dim % 2 == 0, "rope dim {} of {}", rope.dim, dim);
  WINNOW_CHECK(dim <= kMaxIndexHeadDim, "index_head_dim {}", dim);
  WINNOW_CHECK(!numerics.hadamard || (dim & (dim - 1)) == 0, "Hadamard of {}", dim);
}

inline void rotate_and_mix(float* head,
                           int64_t dim,
                           const ops::RopeTable& rope,
                           int64_t position,
                           const ops::IndexerNumerics& numerics) {
  if (numerics.rope_interleave) {
    rotate_interleaved(head, rope, position);
  } else {
    rotate_half_split(head, rope, position);
  }
  if (numerics.hadamard) hadamard_transform(head, dim);
}

inline float index_scale(const float* values, int64_t dim, bool ue8m0) {
  const float scale = e4m3_scale(values, dim, layout::kAmaxFloor);
  return ue8m0 ? layout::ceil_to_power_of_two(scale) : scale;
}

}  // namespace winnow::backends
