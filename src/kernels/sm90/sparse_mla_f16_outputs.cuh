// O of sparse_mla_f16.cuh's kernel, by one or two warpgroups.
#pragma once

#include "kernels/sm90/sparse_mla_f16.cuh"

namespace winnow::kernels::sm90::f16 {

// o[m][4j + c]: channel 64 * (kTiles * half + m) + 16 * warp + 2g + c / 2, line 8j + 2t + c % 2.
template <class T>
struct Accumulator {
  static constexpr int kPairs = T::kPairs, kTiles = T::kTiles;

  const SparseMlaCall& call;
  Shared<T>& shared;
  const int half;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  __device__ __forceinline__ void rescale(int buffer, float (&o)[kTiles][T::kLines / 2]) const {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float2 factor =
          *reinterpret_cast<const float2*>(&shared.rescale[buffer][j * 8 + t * 2]);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        o[m][j * 4] *= factor.x;
        o[m][j * 4 + 1] *= factor.y;
        o[m][j * 4 + 2] *= factor.x;
        o[m][j * 4 + 3] *= factor.y;
      }
    }
  }
  // More 64 tokens. Hands the stage back as soon as its bytes are in registers.
  __device__ __forceinline__ void add(int stage,
                                      int buffer,
                                      bool first,
                                      float (&o)[kTiles][T::kLines / 2]) {
    const uint32_t from =
        smem_address(shared.kv[stage]) + lane * T::kRowStride + half * kTiles * 64 + warp * 16;
    const uint64_t p = wgmma_descriptor(smem_address(shared.p[buffer]));
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
              *reinterpret_cast<const uint32_t*>(&shared.v_scale[buffer][scale][k * 8 + t * 2]);
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
        named_barrier_arrive(stage_empty(stage), 128 + T::kOutputs * 128);
      }
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < kTiles; ++m) wgmma_pin(o[m]);
  }
  __device__ __forceinline__ void store(const TileItem& item,
                                        const float (&o)[kTiles][T::kLines / 2]) {
    float inverse[kPairs][2];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float2 two = *reinterpret_cast<const float2*>(&shared.inverse_sum[j * 8 + t * 2]);
      inverse[j][0] = two.x, inverse[j][1] = two.y;
    }
    __syncwarp();
    if (lane == 0) shared.sum_empty.arrive();
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
        const int buffer = static_cast<int>(step & 1);
        shared.full[stage].wait(parity);
        named_barrier_sync(weights_full(buffer, half), 256);
        if (block > 0 && shared.moved[buffer] != 0) rescale(buffer, o);
        add(static_cast<int>(stage), buffer, block == 0, o);
        named_barrier_arrive(weights_empty(buffer, half), 256);
        if (++stage == T::kStages) stage = 0, parity ^= 1;
      }
      shared.sum_full.wait(items & 1);
      store(item, o);
    }
  }
};

}  // namespace winnow::kernels::sm90::f16
