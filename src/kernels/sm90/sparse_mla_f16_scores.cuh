// S, softmax and weights of sparse_mla_f16.cuh's kernel, by one warpgroup.
#pragma once

#include "kernels/sm90/sparse_mla_f16.cuh"

namespace winnow::kernels::sm90::f16 {

// s (+)= 64 tokens x lines. rows: this lane's ldmatrix address in the stage; factor: f16x2, the
// scales of tokens g and g + 8 of the warp. The caller waits for the products.
// s[4j + c]: token g (c < 2) or g + 8 of the warp's 16, line 8j + 2t + c % 2.
template <class T>
__device__ __forceinline__ void multiply_scores(uint32_t rows,
                                                uint64_t q,
                                                const uint32_t (&factor)[2][T::kScales],
                                                float (&s)[T::kLines / 2]) {
  constexpr int kTile = T::kTileBytes >> 4;
  if constexpr (T::kFp8Query) {
    constexpr int kSteps = 18, kAhead = 3;
    uint32_t a[kAhead * 2][4];
#pragma unroll
    for (int step = 0; step < kAhead; ++step) ldmatrix_x4(a[step], rows + step * 32);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma_fence();
      wgmma_e4m3_rs(s, a[step % (kAhead * 2)], q + step / 4 * kTile + step % 4 * 2, step > 0);
      wgmma_commit();
      wgmma_wait<kAhead>();
      if (step + kAhead < kSteps) {
        ldmatrix_x4(a[(step + kAhead) % (kAhead * 2)], rows + (step + kAhead) * 32);
      }
    }
  } else {
    // Groups of 32 * kParts channels, the roped ones first where they are bf16. Two groups of
    // products are under way while the next one's operand is made; its bytes have been asked for
    // two groups ago.
    constexpr int kParts = T::kScoreParts, kSteps = kParts * 2;
    constexpr int kRopeGroups = T::kRopeBf16 ? 2 / kParts : 0;
    constexpr int kGroups = kRopeGroups + (T::kRopeBf16 ? 16 : 18) / kParts;
    uint32_t a[3][kSteps][4], raw[2][kParts][4];
    const auto fetch = [&](int group) {
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        if (group < kGroups) {
          ldmatrix_x4(raw[group % 2][i], rows + ((group - kRopeGroups) * kParts + i) * 32);
        }
      }
    };
    const auto prepare = [&](int group) {
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        uint32_t(&to)[4] = a[group % 3][k];
        if (group < kRopeGroups) {
          ldmatrix_x4(to, rows + T::kRopeOffset + (group * kSteps + k) * 32);
          continue;
        }
        e4m3x4_to_f16x4(raw[group % 2][k / 2][k % 2 * 2], to[0], to[2]);
        e4m3x4_to_f16x4(raw[group % 2][k / 2][k % 2 * 2 + 1], to[1], to[3]);
        if constexpr (T::kScaled) {
          const int scale = T::kGroupScales ? (group - kRopeGroups) * kParts / 4 : 0;
#pragma unroll
          for (int i = 0; i < 4; ++i) to[i] = multiply_half2(to[i], factor[i % 2][scale]);
        }
      }
      if (group >= kRopeGroups) fetch(group + 2);
    };
    fetch(kRopeGroups);
    fetch(kRopeGroups + 1);
    prepare(0);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        if (group < kRopeGroups) {
          wgmma_bf16_rs(s, a[group % 3][k], q + 8 * kTile + (group * kSteps + k) * 2,
                        group + k > 0);
        } else {
          const int step = (group - kRopeGroups) * kSteps + k;
          wgmma_f16_rs(s, a[group % 3][k], q + step / 4 * kTile + step % 4 * 2, group + k > 0);
        }
      }
      wgmma_commit();
      wgmma_wait<2>();
      if (group + 1 < kGroups) prepare(group + 1);
    }
  }
}

// Joins each value of the eight threads that hold the same lines, v[2j + c] of line 8j + 2t + c.
// The results lie in v[0, kept): those of v[first, first + kept), in as many threads as need be.
struct Joined {
  int first;
  int kept;
  bool writes;  // one thread of those with the same results
};
template <int kCount, class F>
__device__ __forceinline__ Joined join_lines(float (&v)[kCount], int lane, F f) {
  Joined joined{.first = 0, .kept = kCount, .writes = true};
  int count = kCount;
#pragma unroll
  for (int d = 16; d >= 4; d /= 2) {
    const bool upper = (lane & d) != 0;
    if (count > 1) {
      count /= 2;
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        if (i >= count) continue;
        const float other = __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + count], d);
        v[i] = f(upper ? v[i + count] : v[i], other);
      }
      joined.first += upper ? count : 0;
    } else {
      v[0] = f(v[0], __shfl_xor_sync(0xffffffffu, v[0], d));
      joined.writes = joined.writes && !upper;
    }
  }
  joined.kept = count;
  return joined;
}

template <class T>
struct Scorer {
  static constexpr int kPairs = T::kPairs;

  const SparseMlaCall& call;
  Shared<T>& shared;
  const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
  const int g = lane / 4, t = lane % 4;
  TileItem item = {};
  float sum[kPairs][2] = {};  // of this thread's tokens

  // Scale and running maximum of lines 8j + 2t (x, y) and the next (z, w).
  __device__ __forceinline__ void load_lines(float4 (&lines)[kPairs]) const {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      lines[j] = *reinterpret_cast<const float4*>(&shared.line[j * 8 + t * 2]);
    }
  }
  // One value a line, joined over the warp's tokens, to reduce[warp].
  template <class F>
  __device__ __forceinline__ void join(float (&v)[kPairs * 2], F f) {
    const Joined joined = join_lines(v, lane, f);
#pragma unroll
    for (int i = 0; i < kPairs * 2; ++i) {
      if (i >= joined.kept || !joined.writes) continue;
      const int at = joined.first + i;
      shared.reduce[warp][at / 2 * 8 + t * 2 + at % 2] = v[i];
    }
  }
  // Lane r: which of the warp's 16 tokens the group's row r chose.
  __device__ __forceinline__ uint32_t load_mask(int block) const {
    const int rows = call.groups.rows;
    const uint2* at = item.masks + block * rows + min(lane, rows - 1);
    return __ldg(reinterpret_cast<const uint16_t*>(at) + warp);
  }
  __device__ __forceinline__ void load_factors(const uint8_t* stage_rows,
                                               const float* token_scale,
                                               uint32_t (&factor)[2][T::kScales]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int token = warp * 16 + g + r * 8;
      float scale[T::kScales];
      if constexpr (T::kGroupScales) {
        const float4 four =
            *reinterpret_cast<const float4*>(stage_rows + token * T::kRowStride + 512);
        scale[0] = four.x, scale[1] = four.y, scale[2] = four.z, scale[3] = four.w;
      } else {
        scale[0] = token_scale[token];
      }
#pragma unroll
      for (int k = 0; k < T::kScales; ++k) {
        const float unit = fminf(scale[k], T::kLargestScale) * T::kUnit;
        factor[r][k] = pack_half(unit, unit);
      }
    }
  }
  __device__ __forceinline__ void store_factors(int buffer,
                                                const uint32_t (&factor)[2][T::kScales]) const {
    if (t != 0) return;
#pragma unroll
    for (int k = 0; k < T::kScales; ++k) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        shared.v_scale[buffer][k][warp * 16 + g + r * 8] =
            __ushort_as_half(static_cast<uint16_t>(factor[r][k]));
      }
    }
  }
  // Tokens that do not count get -inf.
  __device__ __forceinline__ void mask_out(uint32_t mask, float (&s)[T::kLines / 2]) const {
    if (__all_sync(0xffffffffu, mask == 0xffff)) return;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const uint32_t bits =
          (T::kGrouped ? __shfl_sync(0xffffffffu, mask, j * call.groups.rows / 8) : mask) >> g;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if ((bits >> (c / 2 * 8) & 1) == 0) s[j * 4 + c] = -INFINITY;
      }
    }
  }
  // The rare case that a logit passes a line's running maximum by far: all warps agree on the new
  // one.
  __device__ __forceinline__ void raise(const float (&s)[T::kLines / 2],
                                        int buffer,
                                        float4 (&lines)[kPairs]) {
    float v[kPairs * 2];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      v[j * 2] = fmaxf(s[j * 4], s[j * 4 + 2]) * lines[j].x;
      v[j * 2 + 1] = fmaxf(s[j * 4 + 1], s[j * 4 + 3]) * lines[j].z;
    }
    join(v, [](float a, float b) { return fmaxf(a, b); });
    named_barrier_sync(1, 128);
    if (thread < T::kLines) {
      const float high = fmaxf(fmaxf(shared.reduce[0][thread], shared.reduce[1][thread]),
                               fmaxf(shared.reduce[2][thread], shared.reduce[3][thread]));
      const float top = shared.line[thread].y;
      float factor = 1.0f;
      if (high > top + kSlack) {
        factor = exp2_fast(top - high);
        shared.line[thread].y = high;
      }
      shared.rescale[buffer][thread] = factor;
    }
    named_barrier_sync(1, 128);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float2 factor =
          *reinterpret_cast<const float2*>(&shared.rescale[buffer][j * 8 + t * 2]);
      sum[j][0] *= factor.x;
      sum[j][1] *= factor.y;
    }
    load_lines(lines);
  }
  // s becomes weights; in `buffer`, once it is free: weights, factors for O, V's scales.
  __device__ __forceinline__ void soften(float (&s)[T::kLines / 2],
                                         int buffer,
                                         float4 (&lines)[kPairs]) {
    float high = -INFINITY;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float4 l = lines[j];
      high = fmaxf(high, fmaf(fmaxf(s[j * 4], s[j * 4 + 2]), l.x, -l.y));
      high = fmaxf(high, fmaf(fmaxf(s[j * 4 + 1], s[j * 4 + 3]), l.z, -l.w));
    }
    const bool moved = named_barrier_or(1, 128, high > kSlack);
    if (moved) raise(s, buffer, lines);
    if (thread == 0) shared.moved[buffer] = moved;
    const int tile = lane / 8, row = lane % 8;
    const uint32_t to = smem_address(shared.p[buffer]) + (tile / 2 * 8 + row) * 128 +
                        ((warp * 2 + tile % 2) ^ row) * 16;
    uint32_t low[kPairs], next[kPairs];  // tokens g and g + 8
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float4 l = lines[j];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        s[j * 4 + c] =
            exp2_fast(fmaf(s[j * 4 + c], c % 2 == 0 ? l.x : l.z, c % 2 == 0 ? -l.y : -l.w));
        sum[j][c % 2] += s[j * 4 + c];
      }
      low[j] = pack_half(s[j * 4], s[j * 4 + 1]);
      next[j] = pack_half(s[j * 4 + 2], s[j * 4 + 3]);
      if (j % 2 == 1) {
        stmatrix_x4_trans(to + j / 2 * 2048, low[j - 1], next[j - 1], low[j], next[j]);
      }
    }
  }
  // Sums and log-sum-exps of the item.
  __device__ __forceinline__ void finish(uint32_t items) {
    float v[kPairs * 2];
#pragma unroll
    for (int i = 0; i < kPairs * 2; ++i) v[i] = sum[i / 2][i % 2];
    join(v, [](float a, float b) { return a + b; });
    named_barrier_sync(1, 128);
    shared.sum_empty.wait((items & 1) ^ 1);
    if (thread < T::kLines) {
      const float l = shared.reduce[0][thread] + shared.reduce[1][thread] +
                      shared.reduce[2][thread] + shared.reduce[3][thread];
      shared.inverse_sum[thread] = l > 0 ? call.p.cache_scale / (l * T::kUnit) : 0.0f;
      const float lse = l > 0 ? shared.line[thread].y + log2_fast(l) : -INFINITY;
      int64_t index;
      if (tile_line<T::kGrouped, T::kLines>(call, item, thread, index)) {
        if (!T::kGrouped && call.num_splits > 1) {
          call.partial_lse[partial_index(call, item, thread)] = lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[index] = lse * kLn2;
        }
      }
    }
    shared.sum_full.arrive();
  }

  __device__ __forceinline__ void wait_until_used(int buffer) const {
    named_barrier_sync(weights_empty(buffer, 0), 256);
    if (T::kOutputs == 2) named_barrier_sync(weights_empty(buffer, 1), 256);
  }
  __device__ __forceinline__ void run() {
    const int tile = lane / 8;
    const uint32_t row_at = (warp * 16 + tile % 2 * 8 + lane % 8) * T::kRowStride + tile / 2 * 16;
    const uint64_t q = wgmma_descriptor(smem_address(shared.q));
    uint32_t stage = 0, parity = 0, step = 0, items = 0;
    const int64_t num_items = sparse_mla_items(call);
    for (int64_t i = blockIdx.x; i < num_items; i += gridDim.x, ++items) {
      item = tile_item<T::kGrouped, T::kLines>(call, i);
      const int blocks = item.blocks();
      load_queries<T>(call, item, shared);
      if (thread == 0 && i + gridDim.x < num_items) prefetch_queries<T>(call, i + gridDim.x);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) sum[j][0] = sum[j][1] = 0;
      uint32_t mask = T::kGrouped && blocks > 0 ? load_mask(0) : 0;
      for (int block = 0; block < blocks; ++block, ++step) {
        const int buffer = static_cast<int>(step & 1);
        shared.full[stage].wait(parity);
        uint32_t factor[2][T::kScales];
        if constexpr (T::kScaled) {
          load_factors(shared.kv[stage], shared.token_scale[stage], factor);
        }
        float s[T::kLines / 2];
        multiply_scores<T>(smem_address(shared.kv[stage]) + row_at, q, factor, s);
        const uint32_t now = T::kGrouped ? mask : shared.valid[stage][warp];
        if (T::kGrouped && block + 1 < blocks) mask = load_mask(block + 1);
        float4 lines[kPairs];
        load_lines(lines);
        wgmma_wait<0>();
        wgmma_pin(s);
        mask_out(now, s);
        if (step >= 2) wait_until_used(buffer);
        if constexpr (T::kScaled) store_factors(buffer, factor);
        soften(s, buffer, lines);
        fence_proxy_async();
        named_barrier_arrive(weights_full(buffer, 0), 256);
        if (T::kOutputs == 2) named_barrier_arrive(weights_full(buffer, 1), 256);
        if (++stage == T::kStages) stage = 0, parity ^= 1;
      }
      finish(items);
    }
    // Nobody waits at a barrier when the block ends.
    for (uint32_t last = step < 2 ? 0 : step - 2; last < step; ++last) {
      wait_until_used(static_cast<int>(last & 1));
    }
  }
};

}  // namespace winnow::kernels::sm90::f16
