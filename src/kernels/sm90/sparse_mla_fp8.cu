// Sparse MLA over e4m3 caches without widening them: both products run on the e4m3 tensor cores.
// Tokens are the M side of S^T = K Q^T, channels that of O^T = V^T P^T, so few heads waste nothing.
// Queries and weights are split into two e4m3 terms, value = high + low / 16: exact for bf16
// queries, as fine as bf16 for the weights. K is read in place; V^T is built in registers, a
// transposing load and one byte shuffle for four values. A token's scales multiply the scores and
// the weights, never the elements. Products of 64 tokens are added up in fp32.
//
// A warpgroup owns kHeads heads of an item (row, split); kWarpgroups of them share the gathered
// tokens; kBlocks thread blocks fit on a multiprocessor. Every thread gathers: 64 tokens a stage.
// Where several blocks fit on a multiprocessor, they hide each other's gather with one stage each;
// else a block has two.
#include <cuda_fp16.h>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/device/wgmma.cuh"
#include "kernels/device/wgmma_fp8.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {
namespace {

using layout::LatentLayout;

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

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
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
  static constexpr int kGroupsAtOnce = !kGroupScales ? 1 : kHeads == 32 ? 2 : 4;
  static constexpr int kStages = kBlocks > 2 ? 1 : 2;
  static constexpr int kThreads = kWarpgroups * 128;
};

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
struct Stage {
  using T = Traits<kLayout, kHeads, kWarpgroups, kBlocks>;
  uint8_t latent[4][kTileBytes];
  uint8_t rope[kTokens * (T::kRopeBf16 ? 128 : 64)];
  uint8_t scales[T::kGroupScales ? kTokens * 16 : 0];
};

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
struct alignas(1024) Warpgroup {
  using T = Traits<kLayout, kHeads, kWarpgroups, kBlocks>;
  uint8_t q[4][2 * kHeads * 128];  // rows: high terms of the heads, then low terms
  uint8_t q_rope[T::kRopeBf16 ? kHeads * 128 : 2 * kHeads * 64];
  uint8_t weights[T::kWeightSets][2 * kHeads * 64];
  float reduce[4][kHeads];
  float unscale[kHeads];
};

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
struct Shared {
  Stage<kLayout, kHeads, kWarpgroups, kBlocks>
      stages[Traits<kLayout, kHeads, kWarpgroups, kBlocks>::kStages];
  Warpgroup<kLayout, kHeads, kWarpgroups, kBlocks> warpgroups[kWarpgroups];
};

__device__ __forceinline__ bool barrier_or(int id, int threads, bool value) {
  uint32_t out;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.u32 p, %1, 0;\n"
      "barrier.cta.red.or.pred q, %2, %3, p;\n"
      "selp.u32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(out)
      : "r"(static_cast<uint32_t>(value)), "r"(id), "r"(threads)
      : "memory");
  return out != 0;
}

// (low, high) to the pair of first terms; what they leave becomes (low, high).
__device__ __forceinline__ uint16_t split_first(float& low, float& high) {
  const uint16_t first = f32x2_to_e4m3x2(low, high);
  const uint32_t wide = e4m3x2_to_f16x2(first);
  const float2 back = __half22float2(*reinterpret_cast<const __half2*>(&wide));
  low = (low - back.x) * kLowScale;
  high = (high - back.y) * kLowScale;
  return first;
}

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
struct Worker {
  using T = Traits<kLayout, kHeads, kWarpgroups, kBlocks>;
  static constexpr int kPairs = kHeads / 8;  // of head columns a thread holds: 8j + 2t, 8j + 2t + 1

  const SparseMlaCall& call;
  Shared<kLayout, kHeads, kWarpgroups, kBlocks>& shared;
  Warpgroup<kLayout, kHeads, kWarpgroups, kBlocks>& mine;
  int warpgroup, warp, lane, g, t;
  SparseMlaItem item;
  int head_begin;  // of this warpgroup
  int blocks;
  int gathered;  // blocks of the item whose gather has started
  // Of the block that is gathered next: lane r < 16 holds token 16 * warp + r.
  int32_t next_slot;
  uint32_t next_valid;  // bits of the warp's 16 tokens
  float next_scale;     // kTokenScale

  __device__ __forceinline__ void sync_warpgroup() const { named_barrier_sync(1 + warpgroup, 128); }
  __device__ __forceinline__ int32_t load_slot(int block) const {
    const int at = item.begin + block * kTokens + warp * 16 + lane;
    return lane < 16 && at < item.end ? __ldg(call.p.slots + item.row * call.p.slots_stride + at)
                                      : -1;
  }
  template <bool kHoles>
  __device__ __forceinline__ void copy_rows(int stage, uint32_t unit);
  __device__ __forceinline__ void gather(int stage);
  __device__ __forceinline__ void load_queries();
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
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
template <bool kHoles>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::copy_rows(
    int stage, uint32_t unit) {
  constexpr int kRows = 16 / kWarpgroups;
  const int first = warpgroup * kRows;
  auto& to = shared.stages[stage];
  const auto* cache = static_cast<const uint8_t*>(call.p.cache);
  const auto bytes = [&](int row) { return kHoles && (next_valid >> row & 1) == 0 ? 0 : 16; };
  // Tiles are 1024-byte aligned and a warp's rows begin at a multiple of 8, so the swizzle is an
  // exclusive or on the address.
  const uint32_t latent =
      smem_address(to.latent) + lane / 8 * kTileBytes + (warp * 16 + first) * 128 + (lane % 8 << 4);
  const uint8_t* from = cache + lane * 16;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    cp_async_16<T::kLineHint>((latent ^ ((i & 7) << 4)) + i * 128,
                              from + uint64_t{__shfl_sync(0xffffffffu, unit, first + i)} * 16,
                              bytes(first + i));
  }
  constexpr int kRowsAtOnce = 32 / T::kTail;
  const int sub = lane / T::kTail, chunk = lane % T::kTail;
  const uint8_t* tail = cache + 512 + chunk * 16;
  const uint32_t rope = smem_address(to.rope);
#pragma unroll
  for (int i = 0; i < (kRows + kRowsAtOnce - 1) / kRowsAtOnce; ++i) {
    const int in_warp = i * kRowsAtOnce + sub;
    const int row = first + in_warp, token = warp * 16 + row;
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
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::gather(int stage) {
  const bool valid = slot_is_valid(call, next_slot);
  next_valid = __ballot_sync(0xffffffffu, valid) & 0xffff;
  const int64_t byte = valid ? slot_offset(call, next_slot, T::kRowBytes) : 0;
  const auto unit = static_cast<uint32_t>(byte / 16);
  const auto* cache = static_cast<const uint8_t*>(call.p.cache);
  if constexpr (T::kTokenScale) {
    next_scale =
        valid ? __ldg(reinterpret_cast<const float*>(
                    cache + static_cast<int64_t>(next_slot / kPageSize) * call.p.page_stride_bytes +
                    kPageSize * T::kRowBytes + next_slot % kPageSize * 4))
              : 0.0f;
  }
  // Common case first: without holes nothing has to be zeroed.
  if (__all_sync(0xffffffffu, next_valid == 0xffff)) {
    copy_rows<false>(stage, unit);
  } else {
    copy_rows<true>(stage, unit);
  }
  next_slot = load_slot(++gathered);
  cp_async_commit();
}

// Queries as two e4m3 terms, the rows of the B operand; heads beyond num_heads are zero.
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::load_queries() {
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

// x[j][c]: base-2 logits of tokens g (c < 2) and g + 8 of the warp's 16, heads 8j + 2t + c % 2.
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::scores(
    int stage, const float (&scale)[2][T::kWeightSets], float (&x)[kPairs][4]) {
  auto& from = shared.stages[stage];
  float rope[T::kRopeBf16 ? kHeads / 2 : 1];
  const float softmax = call.p.softmax_scale * kLog2e;
#pragma unroll
  for (int first = 0; first < T::kWeightSets; first += T::kGroupsAtOnce) {
    float part[T::kGroupsAtOnce][kHeads];
    wgmma_fence();
#pragma unroll
    for (int p = 0; p < T::kGroupsAtOnce; ++p) {
      constexpr int kTilesOfPart = 4 / T::kWeightSets;
#pragma unroll
      for (int i = 0; i < kTilesOfPart; ++i) {
        const int tile = (first + p) * kTilesOfPart + i;
        const uint64_t a = wgmma_descriptor(smem_address(from.latent[tile]));
        const uint64_t b = wgmma_descriptor(smem_address(mine.q[tile]));
#pragma unroll
        for (int k = 0; k < 4; ++k) wgmma_e4m3_ss(part[p], a + k * 2, b + k * 2, i + k > 0);
      }
    }
    if (first == 0) {
      if constexpr (T::kRopeBf16) {
        const uint64_t a = wgmma_descriptor(smem_address(from.rope));
        const uint64_t b = wgmma_descriptor(smem_address(mine.q_rope));
#pragma unroll
        for (int k = 0; k < 4; ++k) wgmma_bf16_ss(rope, a + k * 2, b + k * 2, k > 0);
      } else {
        const uint64_t a = wgmma_descriptor_64b(smem_address(from.rope));
        const uint64_t b = wgmma_descriptor_64b(smem_address(mine.q_rope));
#pragma unroll
        for (int k = 0; k < 2; ++k) wgmma_e4m3_ss(part[0], a + k * 2, b + k * 2, 1);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int p = 0; p < T::kGroupsAtOnce; ++p) wgmma_pin(part[p]);
    if constexpr (T::kRopeBf16) wgmma_pin(rope);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float value = first > 0 ? x[j][c] : 0.0f;
#pragma unroll
        for (int p = 0; p < T::kGroupsAtOnce; ++p) {
          const float sum =
              fmaf(part[p][kHeads / 2 + j * 4 + c], 1.0f / kLowScale, part[p][j * 4 + c]);
          value = T::kScaled ? fmaf(sum, scale[c / 2][first + p], value) : value + sum;
        }
        x[j][c] = value;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const float2 unscale = *reinterpret_cast<const float2*>(&mine.unscale[j * 8 + t * 2]);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      float value = x[j][c] * (c % 2 == 0 ? unscale.x : unscale.y);
      if constexpr (T::kRopeBf16) {
        value += rope[j * 4 + c];
      } else {
        value *= call.p.cache_scale;
      }
      x[j][c] = value * softmax;
    }
  }
}

// The rare case that a logit passes the running maximum by far: all warps agree on the new one.
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::raise_top(
    const float (&x)[kPairs][4],
    const float (&bound)[2],
    float (&top)[kPairs][2],
    float (&sum)[kPairs][2],
    float (&o)[8][kPairs][4]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float high = fmaxf(x[j][c] + bound[0], x[j][c + 2] + bound[1]);
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 4));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 8));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 16));
      if (g == 0) mine.reduce[warp][j * 8 + t * 2 + c] = high;
    }
  }
  sync_warpgroup();
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = j * 8 + t * 2 + c;
      const float high = fmaxf(fmaxf(mine.reduce[0][head], mine.reduce[1][head]),
                               fmaxf(mine.reduce[2][head], mine.reduce[3][head]));
      if (high > top[j][c] + kSlack) {
        const float factor = exp2_fast(top[j][c] - high);
        top[j][c] = high;
        sum[j][c] *= factor;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          o[m][j][c] *= factor;
          o[m][j][c + 2] *= factor;
        }
      }
    }
  }
}

// Weights as two e4m3 terms, the rows of the B operand. Column 16 * warp + 2g holds token g of the
// warp, the next one token g + 8.
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::store_weights(
    const float (&x)[kPairs][4],
    const float (&top)[kPairs][2],
    const float (&scale)[2][T::kWeightSets],
    float (&sum)[kPairs][2]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float base = top[j][c] == -INFINITY ? 0.0f : top[j][c];
      const float w0 = exp2_fast(x[j][c] - base), w1 = exp2_fast(x[j][c + 2] - base);
      sum[j][c] += w0 + w1;
      const int head = j * 8 + t * 2 + c;
      const uint32_t at = head * 64 + ((warp ^ (head >> 1 & 3)) << 4) + g * 2;
#pragma unroll
      for (int p = 0; p < T::kWeightSets; ++p) {
        float a = w0 * kWeightScale, b = w1 * kWeightScale;
        if constexpr (T::kScaled) {
          a *= scale[0][p];
          b *= scale[1][p];
        }
        const uint16_t first = split_first(a, b);
        const uint16_t second = f32x2_to_e4m3x2(a, b);
        *reinterpret_cast<uint16_t*>(mine.weights[p] + at) = first;
        *reinterpret_cast<uint16_t*>(mine.weights[p] + kHeads * 64 + at) = second;
      }
    }
  }
}

// more: another block follows, whose gather starts as soon as the stage is free.
// o[m][j][c]: channel 64m + 16 * warp + 2g + c / 2, head 8j + 2t + c % 2, times kWeightScale.
template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::add_outputs(
    int stage, bool more, float (&o)[8][kPairs][4]) {
  const int row = lane % 8;
  const uint32_t from = smem_address(shared.stages[stage].latent) + lane * 128;
  float part[2][kHeads];  // of two tiles of 64 channels
  uint32_t a[2][2][4];
#pragma unroll
  for (int m = 0; m <= 8; ++m) {
    const int buffer = m % 2;
    if (m < 8) {
      const uint32_t column = ((m % 2 * 4 + warp) ^ row) << 4;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        uint32_t v[4];
        ldmatrix_x4_trans(v, from + m / 2 * kTileBytes + k * 4096 + column);
        a[buffer][k][0] = __byte_perm(v[0], v[1], 0x6240);
        a[buffer][k][1] = __byte_perm(v[0], v[1], 0x7351);
        a[buffer][k][2] = __byte_perm(v[2], v[3], 0x6240);
        a[buffer][k][3] = __byte_perm(v[2], v[3], 0x7351);
      }
      const uint64_t b =
          wgmma_descriptor_64b(smem_address(mine.weights[T::kGroupScales ? m / 2 : 0]));
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 2; ++k) wgmma_e4m3_rs(part[buffer], a[buffer][k], b + k * 2, k);
      wgmma_commit();
    } else if (T::kStages == 1) {
      __syncthreads();  // no warp reads the stage any more
      if (more) gather(0);
    }
    if (m == 0) continue;
    if (m < 8) {
      wgmma_wait<1>();
    } else {
      wgmma_wait<0>();
    }
    float(&done)[kHeads] = part[buffer ^ 1];
    wgmma_pin(done);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        o[m > 0 ? m - 1 : 0][j][c] +=
            fmaf(done[kHeads / 2 + j * 4 + c], 1.0f / kLowScale, done[j * 4 + c]);
      }
    }
  }
}

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::store(
    const float (&top)[kPairs][2], float (&sum)[kPairs][2], const float (&o)[8][kPairs][4]) {
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float l = sum[j][c];
      l += __shfl_xor_sync(0xffffffffu, l, 4);
      l += __shfl_xor_sync(0xffffffffu, l, 8);
      l += __shfl_xor_sync(0xffffffffu, l, 16);
      if (g == 0) mine.reduce[warp][j * 8 + t * 2 + c] = l;
    }
  }
  sync_warpgroup();
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int h = j * 8 + t * 2 + c, head = head_begin + h;
      if (head >= call.p.num_heads) continue;
      const float l = mine.reduce[0][h] + mine.reduce[1][h] + mine.reduce[2][h] + mine.reduce[3][h];
      const float inverse = l > 0 ? call.p.cache_scale / (l * kWeightScale) : 0.0f;
      const int64_t piece = item.row * call.num_splits + item.split;
      const int column = warp * 16 + g * 2;
      if (warp == 0 && g == 0) {
        const float lse = l > 0 ? top[j][c] + log2_fast(l) : -INFINITY;
        if (call.num_splits > 1) {
          call.partial_lse[piece * call.p.num_heads + head] = lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[item.row * call.p.num_heads + head] = lse * kLn2;
        }
      }
      if (call.num_splits > 1) {
        float* to = call.partial_out + (piece * call.p.num_heads + head) * kLatentDim + column;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          *reinterpret_cast<float2*>(to + m * 64) =
              make_float2(o[m][j][c] * inverse, o[m][j][c + 2] * inverse);
        }
      } else {
        auto* to = static_cast<__nv_bfloat16*>(call.p.out) +
                   (item.row * call.p.num_heads + head) * kLatentDim + column;
#pragma unroll
        for (int m = 0; m < 8; ++m) {
          *reinterpret_cast<uint32_t*>(to + m * 64) =
              pack_bf16(o[m][j][c] * inverse, o[m][j][c + 2] * inverse);
        }
      }
    }
  }
}

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__device__ __forceinline__ void Worker<kLayout, kHeads, kWarpgroups, kBlocks>::run() {
  float top[kPairs][2], sum[kPairs][2], o[8][kPairs][4];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    top[j][0] = top[j][1] = -INFINITY;
    sum[j][0] = sum[j][1] = 0;
#pragma unroll
    for (int m = 0; m < 8; ++m) o[m][j][0] = o[m][j][1] = o[m][j][2] = o[m][j][3] = 0;
  }
  __syncthreads();  // the item before has been read
  gathered = 0;
  next_slot = load_slot(0);
  if (blocks > 0) gather(0);
  load_queries();
  for (int block = 0; block < blocks; ++block) {
    const int stage = block % T::kStages;
    const bool more = block + 1 < blocks;
    cp_async_wait<0>();
    fence_proxy_async();
    __syncthreads();  // the block is here, and the one before is used up
    const uint32_t valid = next_valid;
    const float token_scale = next_scale;
    if (T::kStages == 2 && more) gather(stage ^ 1);
    const bool in[2] = {(valid >> g & 1) != 0, (valid >> (g + 8) & 1) != 0};
    float scale[2][T::kWeightSets], bound[2] = {0, 0};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (T::kTokenScale) {
        scale[r][0] = __shfl_sync(0xffffffffu, token_scale, g + r * 8);
        bound[r] = log2_fast(fmaxf(scale[r][0], kSmallestScale));
      } else if constexpr (T::kGroupScales) {
        const float4 s = *reinterpret_cast<const float4*>(shared.stages[stage].scales +
                                                          (warp * 16 + g + r * 8) * 16);
        scale[r][0] = s.x, scale[r][1] = s.y, scale[r][2] = s.z, scale[r][3] = s.w;
        bound[r] = log2_fast(fmaxf(fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)), kSmallestScale));
      }
    }
    float x[kPairs][4];
    scores(stage, scale, x);
    bool moved = false;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!in[c / 2]) x[j][c] = -INFINITY;
        moved = moved || x[j][c] + bound[c / 2] > top[j][c % 2] + kSlack;
      }
    }
    if (__any_sync(0xffffffffu, barrier_or(1 + warpgroup, 128, moved))) {
      raise_top(x, bound, top, sum, o);
    }
    store_weights(x, top, scale, sum);
    fence_proxy_async();
    sync_warpgroup();
    add_outputs(stage, more, o);
  }
  store(top, sum, o);
}

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
__global__ void __launch_bounds__(kWarpgroups * 128, kBlocks)
    sparse_mla_fp8_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ __align__(1024) uint8_t raw[];
  auto& shared = *reinterpret_cast<Shared<kLayout, kHeads, kWarpgroups, kBlocks>*>(raw);
  if (smem_address(raw) % 1024 != 0) __trap();  // the swizzled tiles need it
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int warpgroup = kWarpgroups == 1 ? 0 : warp_uniform(thread / 128);
  Worker<kLayout, kHeads, kWarpgroups, kBlocks> worker{.call = call,
                                                       .shared = shared,
                                                       .mine = shared.warpgroups[warpgroup],
                                                       .warpgroup = warpgroup,
                                                       .warp = thread / 32 % 4,
                                                       .lane = lane,
                                                       .g = lane / 4,
                                                       .t = lane % 4,
                                                       .item = {},
                                                       .head_begin = 0,
                                                       .blocks = 0,
                                                       .gathered = 0,
                                                       .next_slot = -1,
                                                       .next_valid = 0,
                                                       .next_scale = 0};
  for (int64_t i = blockIdx.x; i < call.num_items; i += gridDim.x) {
    worker.item = sparse_mla_item(call, i, kHeads * kWarpgroups);
    worker.head_begin = worker.item.head_begin + warpgroup * kHeads;
    worker.blocks = (worker.item.end - worker.item.begin + kTokens - 1) / kTokens;
    worker.run();
  }
}

template <LatentLayout kLayout, int kHeads, int kWarpgroups, int kBlocks>
cudaError_t launch(const SparseMlaCall& call, const SparseMlaPlan& plan, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kLayout, kHeads, kWarpgroups, kBlocks>);
  static_assert(kBytes <= 233472 / kBlocks - 1024);
  const auto kernel = sparse_mla_fp8_kernel<kLayout, kHeads, kWarpgroups, kBlocks>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  kernel<<<plan.grid, kWarpgroups * 128, kBytes, stream>>>(call);
  return cudaGetLastError();
}

template <LatentLayout kLayout>
cudaError_t launch_layout(const SparseMlaCall& call,
                          const SparseMlaPlan& plan,
                          cudaStream_t stream) {
  switch (plan.head_tile) {
    case 8:
      return plan.blocks == 4 ? launch<kLayout, 8, 1, 4>(call, plan, stream)
                              : launch<kLayout, 8, 1, 2>(call, plan, stream);
    case 16:
      return launch<kLayout, 16, 1, 3>(call, plan, stream);
    case 32:
      if constexpr (kLayout == LatentLayout::kFp8_576) {
        return launch<kLayout, 32, 1, 2>(call, plan, stream);
      } else {
        return launch<kLayout, 16, 2, 1>(call, plan, stream);
      }
    case 64:
      return launch<kLayout, 32, 2, 1>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_sparse_mla_fp8(const SparseMlaCall& call,
                                  const SparseMlaPlan& plan,
                                  cudaStream_t stream) {
  switch (plan.layout) {
    case LatentLayout::kFp8_576:
      return launch_layout<LatentLayout::kFp8_576>(call, plan, stream);
    case LatentLayout::kFp8_644:
      return launch_layout<LatentLayout::kFp8_644>(call, plan, stream);
    case LatentLayout::kFp8_656:
      return launch_layout<LatentLayout::kFp8_656>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
