// The parts of the e4m3 sparse MLA kernel that bring data in: shared memory plan, gather, queries.
// sparse_mla_fp8.cu has the design and the arithmetic; it alone includes this file.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/device/wgmma.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {

using layout::LatentLayout;

constexpr int kThreads = 128;
constexpr int kTokens = 64;
constexpr int kTileBytes = kTokens * 128;  // 128 channels of a stage
// The low term of a split value is stored 16 times its size.
constexpr float kLowScale = 16.0f;
// Weights reach 2^kSlack above the running maximum and are stored times 2^kWeightShift.
constexpr float kSlack = 4.0f;
constexpr float kWeightScale = 16.0f;
// Queries are scaled by a power of two to [2^7, 2^8).
constexpr int kQueryExponent = 7;
constexpr float kSmallestScale = 1e-30f;

template <LatentLayout kLayout, int kHeads, int kBlocks>
struct Traits {
  static constexpr bool kRopeBf16 = kLayout != LatentLayout::kFp8_576;
  static constexpr bool kGroupScales = kLayout == LatentLayout::kFp8_656;
  static constexpr bool kTokenScale = kLayout == LatentLayout::kFp8_644;
  static constexpr bool kScaled = kGroupScales || kTokenScale;
  static constexpr int kRowBytes = kLayout == LatentLayout::kFp8_576   ? 576
                                   : kLayout == LatentLayout::kFp8_644 ? 640
                                                                       : 656;
  static constexpr int kTail = kRowBytes / 16 - 32;  // chunks behind the latent part
  // Rows of 576 bytes end in the middle of a 128-byte line: the rest of it is not wanted.
  static constexpr bool kLineHint = kLayout != LatentLayout::kFp8_576;
  static constexpr int kWeightSets = kGroupScales ? 4 : 1;
  // Scores of this many 128-channel groups are under way at a time.
  static constexpr int kGroupsAtOnce = !kGroupScales ? 1 : 4;
  static constexpr int kStages = kBlocks > 2 ? 1 : 2;
};

template <LatentLayout kLayout, int kHeads, int kBlocks>
struct Stage {
  using T = Traits<kLayout, kHeads, kBlocks>;
  uint8_t latent[4][kTileBytes];
  uint8_t rope[kTokens * (T::kRopeBf16 ? 128 : 64)];
  uint8_t scales[T::kGroupScales ? kTokens * 16 : 0];
};

template <LatentLayout kLayout, int kHeads, int kBlocks>
struct alignas(1024) Heads {
  using T = Traits<kLayout, kHeads, kBlocks>;
  uint8_t q[4][2 * kHeads * 128];  // rows: high terms of the heads, then low terms
  uint8_t q_rope[T::kRopeBf16 ? kHeads * 128 : 2 * kHeads * 64];
  uint8_t weights[T::kWeightSets][2 * kHeads * 64];
  float reduce[4][kHeads];
  float unscale[kHeads];
};

template <LatentLayout kLayout, int kHeads, int kBlocks>
struct Shared {
  Stage<kLayout, kHeads, kBlocks> stages[Traits<kLayout, kHeads, kBlocks>::kStages];
  Heads<kLayout, kHeads, kBlocks> heads;
};

// (low, high) to the pair of first terms; what they leave becomes (low, high).
__device__ __forceinline__ uint16_t split_first(float& low, float& high) {
  const uint16_t first = f32x2_to_e4m3x2(low, high);
  const uint32_t wide = e4m3x2_to_f16x2(first);
  const float2 back = __half22float2(*reinterpret_cast<const __half2*>(&wide));
  low = (low - back.x) * kLowScale;
  high = (high - back.y) * kLowScale;
  return first;
}

template <LatentLayout kLayout, int kHeads, int kBlocks>
struct Worker {
  using T = Traits<kLayout, kHeads, kBlocks>;
  static constexpr int kPairs = kHeads / 8;  // of head columns a thread holds: 8j + 2t, 8j + 2t + 1

  const SparseMlaCall& call;
  Shared<kLayout, kHeads, kBlocks>& shared;
  Heads<kLayout, kHeads, kBlocks>& mine;
  int warp, lane, g, t;
  SparseMlaItem item;
  int head_begin;
  int blocks;
  int gathered;       // blocks of the item whose gather has started
  int32_t next_slot;  // of the block that is gathered next: lane r < 16 holds token 16 * warp + r
  // Of the gathered blocks, by stage.
  uint32_t valid_of[T::kStages];  // bits of the warp's 16 tokens
  float scale_of[T::kStages];     // kTokenScale

  __device__ __forceinline__ void sync_warpgroup() const { named_barrier_sync(1, kThreads); }
  __device__ __forceinline__ int32_t load_slot(int block) const {
    const int at = item.begin + block * kTokens + warp * 16 + lane;
    return lane < 16 && at < item.end ? __ldg(call.p.slots + item.row * call.p.slots_stride + at)
                                      : -1;
  }
  template <bool kHoles>
  __device__ __forceinline__ void copy_rows(int stage, uint32_t valid, uint32_t unit);
  __device__ __forceinline__ void gather(int stage);
  __device__ __forceinline__ void load_queries();
  // The item's length and first slots, neither waiting for the other.
  __device__ __forceinline__ void open() {
    __syncthreads();  // the item before has been read
    gathered = 0;
    const int32_t slot = load_slot(0);
    bound_by_length(call, item);
    next_slot = item.begin + warp * 16 + lane < item.end ? slot : -1;
    blocks = (item.end - item.begin + kTokens - 1) / kTokens;
  }
  __device__ __forceinline__ void scores(int stage,
                                         const float (&scale)[2][T::kWeightSets],
                                         float (&x)[kPairs][4]);
  __device__ __forceinline__ void store_weights(const float (&x)[kPairs][4],
                                                const float (&top)[kPairs][2],
                                                const float (&scale)[2][T::kWeightSets],
                                                float (&sum)[kPairs][2]);
  __device__ __forceinline__ void add_outputs(int stage, bool more, float (&o)[8][kPairs][4]);
  __device__ __forceinline__ void raise_top(const float (&x)[kPairs][4],
                                            const float (&bound)[2],
                                            float (&top)[kPairs][2],
                                            float (&sum)[kPairs][2],
                                            float (&o)[8][kPairs][4]);
  __device__ __forceinline__ void store(const float (&top)[kPairs][2],
                                        float (&sum)[kPairs][2],
                                        const float (&o)[8][kPairs][4]);
  __device__ __forceinline__ void run();
};

// This warp's part of a stage: a row's latent part is one instruction of the warp, what lies behind
// it goes several rows at once. unit: lane r holds where token 16 * warp + r lies, in 16 bytes.
template <LatentLayout kLayout, int kHeads, int kBlocks>
template <bool kHoles>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::copy_rows(int stage,
                                                                            uint32_t valid,
                                                                            uint32_t unit) {
  constexpr int kRows = 16;
  auto& to = shared.stages[stage];
  const auto* cache = static_cast<const uint8_t*>(call.p.cache);
  const auto bytes = [&](int row) { return kHoles && (valid >> row & 1) == 0 ? 0 : 16; };
  // Tiles are 1024-byte aligned and a warp's rows begin at a multiple of 8, so the swizzle is an
  // exclusive or on the address.
  const uint32_t latent =
      smem_address(to.latent) + lane / 8 * kTileBytes + warp * 16 * 128 + (lane % 8 << 4);
  const uint8_t* from = cache + lane * 16;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    cp_async_16<T::kLineHint>((latent ^ ((i & 7) << 4)) + i * 128,
                              from + uint64_t{__shfl_sync(0xffffffffu, unit, i)} * 16, bytes(i));
  }
  constexpr int kRowsAtOnce = 32 / T::kTail;
  const int sub = lane / T::kTail, chunk = lane % T::kTail;
  const uint8_t* tail = cache + 512 + chunk * 16;
  const uint32_t rope = smem_address(to.rope);
#pragma unroll
  for (int i = 0; i < (kRows + kRowsAtOnce - 1) / kRowsAtOnce; ++i) {
    const int in_warp = i * kRowsAtOnce + sub;
    const int row = in_warp, token = warp * 16 + row;
    const uint32_t from_unit = __shfl_sync(0xffffffffu, unit, row & 15);
    uint32_t dst;
    if constexpr (kLayout == LatentLayout::kFp8_576) {
      dst = rope + token * 64 + ((chunk ^ (token >> 1 & 3)) << 4);
    } else if constexpr (kLayout == LatentLayout::kFp8_644) {
      dst = rope + token * 128 + ((chunk ^ (token & 7)) << 4);
    } else {
      dst = chunk == 0 ? smem_address(to.scales) + token * 16
                       : rope + token * 128 + (((chunk - 1) ^ (token & 7)) << 4);
    }
    if (32 % T::kTail == 0 || (sub < kRowsAtOnce && in_warp < kRows)) {
      cp_async_16<T::kLineHint>(dst, tail + uint64_t{from_unit} * 16, bytes(row));
    }
  }
}

// Starts the copies of the block whose slots are in next_slot; slots that are not valid give zeros.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::gather(int stage) {
  const bool in = slot_is_valid(call, next_slot);
  const uint32_t valid = __ballot_sync(0xffffffffu, in) & 0xffff;
  const int64_t byte = in ? slot_offset(call, next_slot, T::kRowBytes) : 0;
  const auto unit = static_cast<uint32_t>(byte / 16);
  const auto* cache = static_cast<const uint8_t*>(call.p.cache);
  float scale = 0;
  if constexpr (T::kTokenScale) {
    if (in) {
      scale = __ldg(reinterpret_cast<const float*>(
          cache + static_cast<int64_t>(next_slot / kPageSize) * call.p.page_stride_bytes +
          kPageSize * T::kRowBytes + next_slot % kPageSize * 4));
    }
  }
#pragma unroll
  for (int s = 0; s < T::kStages; ++s) {
    if (T::kStages > 1 && s != stage) continue;
    valid_of[s] = valid;
    scale_of[s] = scale;
  }
  // Common case first: without holes nothing has to be zeroed.
  if (__all_sync(0xffffffffu, valid == 0xffff)) {
    copy_rows<false>(stage, valid, unit);
  } else {
    copy_rows<true>(stage, valid, unit);
  }
  next_slot = load_slot(++gathered);
  cp_async_commit();
}

// Queries as two e4m3 terms, the rows of the B operand; heads beyond num_heads are zero.
template <LatentLayout kLayout, int kHeads, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kBlocks>::load_queries() {
#pragma unroll 2
  for (int h = warp; h < kHeads; h += 4) {
    const int head = head_begin + h;
    const bool in = head < call.p.num_heads;
    const int64_t at = item.row * call.p.num_heads + (in ? head : 0);
    const auto* latent = reinterpret_cast<const uint4*>(
        static_cast<const __nv_bfloat16*>(call.p.q_latent) + at * kLatentDim + lane * 16);
    const auto* rope = reinterpret_cast<const uint4*>(
        static_cast<const __nv_bfloat16*>(call.p.q_rope) + at * kRopeDim);
    const uint4 zero = make_uint4(0, 0, 0, 0);
    const uint4 raw[2] = {in ? __ldg(latent) : zero, in ? __ldg(latent + 1) : zero};
    uint4 raw_rope[2] = {zero, zero};
    if constexpr (T::kRopeBf16) {
      if (in && lane < 8) raw_rope[0] = __ldg(rope + lane);
    } else if (in && lane < 4) {
      raw_rope[0] = __ldg(rope + lane * 2);
      raw_rope[1] = __ldg(rope + lane * 2 + 1);
    }
    float v[16], r[16];
    const auto widen = [](const uint4(&from)[2], float(&to)[16]) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t words[4] = {from[i].x, from[i].y, from[i].z, from[i].w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          to[i * 8 + k * 2] = __uint_as_float(words[k] << 16);
          to[i * 8 + k * 2 + 1] = __uint_as_float(words[k] & 0xffff0000u);
        }
      }
    };
    widen(raw, v);
    widen(raw_rope, r);
    float high = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      high = fmaxf(high, fabsf(v[k]));
      if constexpr (!T::kRopeBf16) high = fmaxf(high, fabsf(r[k]));
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
    const int exponent = static_cast<int>(__float_as_uint(high) >> 23) - 127;
    int shift = high > 0 && exponent < 128 ? kQueryExponent - exponent : 0;
    shift = min(max(shift, -120), 120);
    const float up = __uint_as_float(static_cast<uint32_t>(shift + 127) << 23);
    if (lane == 0) {
      mine.unscale[h] = __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
    }
    const auto put = [&](float(&x)[16], uint32_t to_high, uint32_t to_low) {
      uint32_t first[4], second[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        uint32_t halves[2][2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float a = x[k * 4 + i * 2] * up, b = x[k * 4 + i * 2 + 1] * up;
          halves[0][i] = split_first(a, b);
          halves[1][i] = f32x2_to_e4m3x2(a, b);
        }
        first[k] = halves[0][0] | halves[0][1] << 16;
        second[k] = halves[1][0] | halves[1][1] << 16;
      }
      store_shared_16(to_high, make_uint4(first[0], first[1], first[2], first[3]));
      store_shared_16(to_low, make_uint4(second[0], second[1], second[2], second[3]));
    };
    const uint32_t tile = smem_address(mine.q[lane / 8]);
    const uint32_t column = (lane % 8 ^ (h & 7)) << 4;  // kHeads is a multiple of 8
    put(v, tile + h * 128 + column, tile + (kHeads + h) * 128 + column);
    const uint32_t rope_tile = smem_address(mine.q_rope);
    if constexpr (T::kRopeBf16) {
      if (lane < 8) store_shared_16(rope_tile + h * 128 + ((lane ^ (h & 7)) << 4), raw_rope[0]);
    } else if (lane < 4) {
      const uint32_t rope_column = (lane ^ (h >> 1 & 3)) << 4;
      put(r, rope_tile + h * 64 + rope_column, rope_tile + (kHeads + h) * 64 + rope_column);
    }
  }
  fence_proxy_async();
}

}  // namespace winnow::kernels::sm90
