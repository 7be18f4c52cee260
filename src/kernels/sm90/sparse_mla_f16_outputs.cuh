// Softmax and O of sparse_mla_f16.cuh's kernel, by one or two warpgroups.
#pragma once

#include "kernels/sm90/sparse_mla_f16_scores.cuh"

namespace winnow::kernels::sm90::f16 {

// o[m][4j + c]: channel 64 * (kTiles * half + m) + 16 * warp + 2g + c / 2, line 8j + 2t + c % 2.
template <class T>
struct Accumulator {
  static constexpr int kPairs = T::kPairs, kTiles = T::kTiles;

  const SparseMlaCall& call;
  Shared<T>& shared;
  const int half;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  // Softmax: kThreadsOfLine neighbouring lanes a line, this thread of line `own`.
  static constexpr int kSides = T::kThreadsOfLine;
  static constexpr int kRuns = 16 / kSides;  // of four tokens
  const int own = (half * 128 + warp * 32 + lane) / kSides, side = lane % kSides;
  float top = kNoTop, sum = 0;

  __device__ __forceinline__ void meet() const { named_barrier_sync(2, T::kOutputs * 128); }
  // The tile's weights; what the sums so far are to be multiplied by.
  __device__ __forceinline__ void soften() {
    float x[kRuns][4], high = -INFINITY;
    const uint32_t from = smem_address(shared.s);
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const uint4 four = load_shared_16(from + score_offset(own, (i * kSides + side) * 4));
      x[i][0] = __uint_as_float(four.x), x[i][1] = __uint_as_float(four.y);
      x[i][2] = __uint_as_float(four.z), x[i][3] = __uint_as_float(four.w);
      high = fmaxf(high, fmaxf(fmaxf(x[i][0], x[i][1]), fmaxf(x[i][2], x[i][3])));
    }
    // The maximum moves only when a logit passes it by far.
    const bool moves = __any_sync(0xffffffffu, high > top + kSlack);
    float factor = 1.0f;
    if (moves) {
#pragma unroll
      for (int d = 1; d < kSides; d *= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
      if (high > top + kSlack) {
        factor = exp2_fast(top - high);
        top = high;
        sum *= factor;
      }
      if (side == 0) shared.rescale[own] = factor;
    }
    if (lane == 0) shared.moved[half * 4 + warp] = moves;
    uint2 w[kRuns];
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        x[i][k] = exp2_fast(x[i][k] - top);
        sum += x[i][k];
      }
      w[i] = make_uint2(pack_half(x[i][0], x[i][1]), pack_half(x[i][2], x[i][3]));
    }
    __syncwarp();  // in place: the warp has read its lines
    const uint32_t to = weights() + own / 8 * T::kWeightStride + own % 8 * 128;
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int run = i * kSides + side;
      store_shared_8(to + ((run / 2 ^ own % 8) << 4) + run % 2 * 8, w[i]);
    }
    fence_proxy_async();
    meet();
  }
  __device__ __forceinline__ uint32_t weights() const {
    return smem_address(T::kInPlace ? shared.s : shared.p);
  }
  __device__ __forceinline__ void rescale(float (&o)[kTiles][T::kLines / 2]) const {
    // The warp that wrote a line's factor, if any.
    constexpr int kLinesOfWarp = 32 / kSides;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      if (shared.moved[(j * 8 + t * 2) / kLinesOfWarp] == 0) continue;
      const float2 factor = *reinterpret_cast<const float2*>(&shared.rescale[j * 8 + t * 2]);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        o[m][j * 4] *= factor.x;
        o[m][j * 4 + 1] *= factor.y;
        o[m][j * 4 + 2] *= factor.x;
        o[m][j * 4 + 3] *= factor.y;
      }
    }
  }
  __device__ __forceinline__ bool has_moved() const {
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < T::kOutputs; ++i) {
      const uint4 four = *reinterpret_cast<const uint4*>(&shared.moved[i * 4]);
      any |= four.x | four.y | four.z | four.w;
    }
    return any != 0;
  }
  // The item's sums and log-sum-exps.
  __device__ __forceinline__ void finish(const TileItem& item, int buffer) {
#pragma unroll
    for (int d = 1; d < kSides; d *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (side == 0) {
      shared.inverse_sum[buffer][own] = sum > 0 ? call.p.cache_scale / (sum * T::kUnit) : 0.0f;
      const float lse = sum > 0 ? top + log2_fast(sum) : -INFINITY;
      int64_t index;
      if (tile_line<T::kGrouped, T::kLines>(call, item, own, index)) {
        if (!T::kGrouped && call.num_splits > 1) {
          call.partial_lse[partial_index(call, item, own)] = lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[index] = lse * kLn2;
        }
      }
    }
    __syncwarp();
    meet();
    top = kNoTop, sum = 0;
  }
  // More 64 tokens. Hands the stage back as soon as its bytes are in registers.
  __device__ __forceinline__ void add(int stage, bool first, float (&o)[kTiles][T::kLines / 2]) {
    const uint32_t from =
        smem_address(shared.kv[stage]) + lane * T::kRowStride + half * kTiles * 64 + warp * 16;
    const uint64_t p = wgmma_descriptor(weights(), 16, T::kWeightStride);
    uint32_t a[2][2][4], raw[2][4], factor[4][2];
    // Units of 64 channels and 32 tokens.
    const auto fetch = [&](int unit) {
      if (unit < kTiles * 2) {
        ldmatrix_x4_trans(raw[unit % 2], from + unit / 2 * 64 + unit % 2 * 32 * T::kRowStride);
      }
    };
    const auto prepare = [&](int unit) {
      if (T::kScaled && unit % (T::kGroupScales ? 4 : kTiles * 2) == 0) {
        const int scale = T::kGroupScales ? (half * kTiles + unit / 2) / 2 : 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          factor[k / 2][k % 2] =
              *reinterpret_cast<const uint32_t*>(&shared.v_scale[scale][k * 8 + t * 2]);
        }
      }
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        uint32_t(&to)[4] = a[unit % 2][k];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // Tokens 2t, 2t + 1 of channels 2g (the low pair) and 2g + 1.
          const uint32_t four = __byte_perm(raw[unit % 2][k * 2 + i], 0, 0x3120);
          e4m3x4_to_f16x4(four, to[i * 2], to[i * 2 + 1]);
          if constexpr (T::kScaled) {
            to[i * 2] = multiply_half2(to[i * 2], factor[unit % 2 * 2 + k][i]);
            to[i * 2 + 1] = multiply_half2(to[i * 2 + 1], factor[unit % 2 * 2 + k][i]);
          }
        }
      }
      fetch(unit + 2);
    };
    fetch(0);
    fetch(1);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) wgmma_pin(o[m]);
    prepare(0);
#pragma unroll
    for (int unit = 0; unit < kTiles * 2; ++unit) {
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        wgmma_f16_rs(o[unit / 2], a[unit % 2][k], p + (unit % 2 * 2 + k) * 2,
                     !first || unit % 2 + k > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (unit + 1 < kTiles * 2) prepare(unit + 1);
      if (unit + 2 == kTiles * 2) {
        shared.empty[stage].arrive();
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < kTiles; ++m) wgmma_pin(o[m]);
  }
  __device__ __forceinline__ void store(const TileItem& item,
                                        int buffer,
                                        const float (&o)[kTiles][T::kLines / 2]) {
    float inverse[kPairs][2];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float2 two =
          *reinterpret_cast<const float2*>(&shared.inverse_sum[buffer][j * 8 + t * 2]);
      inverse[j][0] = two.x, inverse[j][1] = two.y;
    }
    const int column = half * kTiles * 64 + warp * 16 + g * 2;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int line = j * 8 + t * 2 + c;
        int64_t index;
        if (!tile_line<T::kGrouped, T::kLines>(call, item, line, index)) continue;
        if (!T::kGrouped && call.num_splits > 1) {
          float* to = call.partial_out + partial_index(call, item, line) * kLatentDim + column;
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            *reinterpret_cast<float2*>(to + m * 64) =
                make_float2(o[m][j * 4 + c] * inverse[j][c], o[m][j * 4 + c + 2] * inverse[j][c]);
          }
        } else {
          auto* to = static_cast<__nv_bfloat16*>(call.p.out) + index * kLatentDim + column;
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            *reinterpret_cast<uint32_t*>(to + m * 64) =
                pack_bf16(o[m][j * 4 + c] * inverse[j][c], o[m][j * 4 + c + 2] * inverse[j][c]);
          }
        }
      }
    }
  }
  __device__ __forceinline__ void run() {
    float o[kTiles][T::kLines / 2];
    uint32_t stage = 0, parity = 0, step = 0, items = 0;
    const int64_t num_items = sparse_mla_items(call);
    for (int64_t i = blockIdx.x; i < num_items; i += gridDim.x, ++items) {
      const TileItem item = tile_item<T::kGrouped, T::kLines>(call, i);
      const int blocks = item.blocks();
      if (blocks == 0) {
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
#pragma unroll
          for (int k = 0; k < T::kLines / 2; ++k) o[m][k] = 0;
        }
      }
      for (int block = 0; block < blocks; ++block, ++step) {
        shared.scores_full.wait(step & 1);
        soften();
        if (block > 0 && has_moved()) rescale(o);
        shared.full[stage].wait(parity);
        add(static_cast<int>(stage), block == 0, o);
        shared.scores_empty.arrive();
        if (++stage == T::kStages) stage = 0, parity ^= 1;
      }
      finish(item, static_cast<int>(items & 1));
      store(item, static_cast<int>(items & 1), o);
    }
  }
};

}  // namespace winnow::kernels::sm90::f16
