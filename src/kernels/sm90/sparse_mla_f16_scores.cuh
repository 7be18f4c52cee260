// S of sparse_mla_f16.cuh's kernel, by one warpgroup.
#pragma once

#include "kernels/sm90/sparse_mla_f16.cuh"

namespace winnow::kernels::sm90::f16 {

// s = 64 tokens x lines, widened to f16. rows: this lane's ldmatrix address in the stage; scales:
// where the scales of token g of the warp lie, those of token g + 8 are kScaleStep bytes further
// on. The caller waits for the products. s[4j + c]: token g (c < 2) or g + 8 of the warp's 16, line
// 8j + 2t + c % 2.
template <class T>
__device__ __forceinline__ void multiply_widened(uint32_t rows,
                                                 uint64_t q,
                                                 uint32_t scales,
                                                 float (&s)[T::kLines / 2]) {
  constexpr int kTile = T::kTileBytes >> 4;
  uint32_t factor[2][T::kScales];
  if constexpr (T::kScaled) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int k = 0; k < T::kScales; ++k) {
        const float unit =
            fminf(load_shared_f32(scales + r * T::kScaleStep + k * 4), T::kLargestScale) * T::kUnit;
        factor[r][k] = pack_half(unit, unit);
      }
    }
  }
  // Groups of 32 * kParts channels, the roped ones first where they are bf16. Two groups of
  // products are under way while the next one's operand is made; its bytes have been asked for
  // two groups ago.
  constexpr int kParts = 1, kSteps = kParts * 2;
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
        wgmma_bf16_rs(s, a[group % 3][k], q + T::kRopeTile * kTile + (group * kSteps + k) * 2,
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

// The same as a product of e4m3.
template <class T>
__device__ __forceinline__ void multiply_e4m3(uint32_t rows,
                                              uint64_t q,
                                              uint32_t scales,
                                              float (&s)[T::kLines / 2]) {
  constexpr int kTile = T::kTileBytes >> 4;
  constexpr int kRopeGroups = T::kRopeBf16 ? 4 / T::kGroup : 0;  // of bf16, the first ones
  constexpr int kGroups = kRopeGroups + T::kSteps / T::kGroup;
  float part[T::kLines / 2];
  uint32_t a[2][T::kGroup][4];
  const auto fetch = [&](int group) {
#pragma unroll
    for (int i = 0; i < T::kGroup; ++i) {
      const int at = group < kRopeGroups ? T::kRopeOffset + (group * T::kGroup + i) * 32
                                         : ((group - kRopeGroups) * T::kGroup + i) * 32;
      ldmatrix_x4(a[group % 2][i], rows + at);
    }
  };
  fetch(0);
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int first = (group - kRopeGroups) * T::kGroup;
    // What comes first needs no scale.
    const bool direct = group < kRopeGroups || (!T::kRopeBf16 && first < T::kChain);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::kGroup; ++i) {
      const uint32_t(&operand)[4] = a[group % 2][i];
      if (group < kRopeGroups) {
        wgmma_bf16_rs(s, operand, q + T::kRopeTile * kTile + (group * T::kGroup + i) * 2,
                      group + i > 0);
        continue;
      }
      const int step = first + i;
#pragma unroll
      for (int term = 0; term < T::kTerms; ++term) {
        const uint64_t at = step < 16 ? q + (term * 4 + step / 4) * kTile + step % 4 * 2
                                      : q + T::kRopeTile * kTile + term * 4 + (step - 16) * 2;
        const bool more = step % T::kChain + term > 0;
        if (direct) {
          wgmma_e4m3_rs(s, operand, at, more);
        } else {
          wgmma_e4m3_rs(part, operand, at, more);
        }
      }
    }
    wgmma_commit();
    if (group + 1 < kGroups) {
      wgmma_wait<1>();
      fetch(group + 1);
    }
    if (direct || (first + T::kGroup) % T::kChain != 0) continue;
    float scale[2] = {1.0f, 1.0f};
    if constexpr (T::kScaled) {
      const uint32_t at = scales + (T::kGroupScales ? first / T::kChain * 4 : 0);
      scale[0] = load_shared_f32(at);
      scale[1] = load_shared_f32(at + T::kScaleStep);
    }
    wgmma_wait<0>();
    wgmma_pin(s);
    wgmma_pin(part);
#pragma unroll
    for (int k = 0; k < T::kLines / 2; ++k) {
      s[k] = T::kScaled ? fmaf(part[k], scale[k % 4 / 2], s[k]) : s[k] + part[k];
    }
  }
}

// Where token `token` of line `line` lies in S: no two lanes meet at a bank, neither those that
// write a token each nor those that read four.
__device__ __forceinline__ uint32_t score_offset(int line, int token) {
  const int swizzle = (line >> 1 & 3) << 3 ^ (line & 1) << 4;
  return line * 256 + ((token ^ swizzle) << 2);
}

template <class T>
struct Scorer {
  static constexpr int kPairs = T::kPairs;

  const SparseMlaCall& call;
  Shared<T>& shared;
  const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
  const int g = lane / 4, t = lane % 4;
  TileItem item = {};

  // Lane r: which of the warp's 16 tokens the group's row r chose.
  __device__ __forceinline__ uint32_t load_mask(int block) const {
    const int rows = call.groups.rows;
    const uint2* at = item.masks + block * rows + min(lane, rows - 1);
    return __ldg(reinterpret_cast<const uint16_t*>(at) + warp);
  }
  // What V is multiplied by. scales: as in multiply_widened.
  __device__ __forceinline__ void store_factors(uint32_t scales) const {
    if (t >= T::kScales) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float scale = load_shared_f32(scales + r * T::kScaleStep + t * 4);
      shared.v_scale[t][warp * 16 + g + r * 8] =
          __float2half_rn(fminf(scale, T::kLargestScale) * T::kUnit);
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
  // Base-2 logits.
  __device__ __forceinline__ void store_scores(const float (&s)[T::kLines / 2],
                                               const float2 (&scale)[kPairs]) const {
    const uint32_t to = smem_address(shared.s);
    const int token = warp * 16 + g;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float x = s[j * 4 + c] * (c % 2 == 0 ? scale[j].x : scale[j].y);
        // The swizzle is the same for all j.
        store_shared_4(to + j * 2048 + score_offset(t * 2 + c % 2, token + c / 2 * 8),
                       __float_as_uint(x));
      }
    }
  }

  __device__ __forceinline__ void run() {
    const int tile = lane / 8;
    const uint32_t row_at = (warp * 16 + tile % 2 * 8 + lane % 8) * T::kRowStride + tile / 2 * 16;
    const uint64_t q = wgmma_descriptor(smem_address(shared.q));
    uint32_t stage = 0, parity = 0, step = 0;
    const int64_t num_items = sparse_mla_items(call);
    for (int64_t i = blockIdx.x; i < num_items; i += gridDim.x) {
      item = tile_item<T::kGrouped, T::kLines>(call, i);
      const int blocks = item.blocks();
      load_queries<T>(call, item, shared);
      if (thread == 0 && i + gridDim.x < num_items) {
        prefetch_queries<T::kGrouped, T::kLines>(call, i + gridDim.x);
      }
      uint32_t mask = T::kGrouped && blocks > 0 ? load_mask(0) : 0;
      for (int block = 0; block < blocks; ++block, ++step) {
        shared.full[stage].wait(parity);
        const int token = warp * 16 + g;
        const uint32_t scales = T::kTokenScale
                                    ? smem_address(shared.token_scale[stage] + token)
                                    : smem_address(shared.kv[stage]) + token * T::kRowStride + 512;
        const uint32_t now = T::kGrouped ? mask : shared.valid[stage][warp];
        if (T::kGrouped && block + 1 < blocks) mask = load_mask(block + 1);
        float s[T::kLines / 2];
        const uint32_t rows = smem_address(shared.kv[stage]) + row_at;
        if constexpr (T::kTerms == 0) {
          multiply_widened<T>(rows, q, scales, s);
        } else {
          multiply_e4m3<T>(rows, q, scales, s);
        }
        float2 scale[kPairs];
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          scale[j] = *reinterpret_cast<const float2*>(&shared.scale[j * 8 + t * 2]);
        }
        wgmma_wait<0>();
        wgmma_pin(s);
        mask_out(now, s);
        shared.scores_empty.wait((step & 1) ^ 1);
        store_scores(s, scale);
        if constexpr (T::kScaled) store_factors(scales);
        shared.scores_full.arrive();
        shared.empty[stage].arrive();
        if (++stage == T::kStages) stage = 0, parity ^= 1;
      }
    }
  }
};

}  // namespace winnow::kernels::sm90::f16
