// Sparse MLA over e4m3 caches, for tiles of 16 to 64 lines (heads of a row, or of rows that share a
// gather). Tokens are the M side of S^T = K Q^T, channels that of O^T = V^T P^T, so that the cached
// bytes are the operand that comes from registers: they lie in shared memory as in the cache.
// One block owns an item (row, split, head tile; or group) at a time; three or four warpgroups:
//   producers  one bulk copy a token, kStages * 64 tokens ahead;
//   scores     S (64 tokens x lines), and nothing else: it is the longest chain;
//   outputs    one warpgroup up to 16 lines, two beyond: softmax, a few threads a line, then O, 512
//              or 256 channels x lines each.
// For O, and with 64 lines for S, e4m3 is widened to f16, where it is exact, between ldmatrix and
// wgmma. Of layouts with scales, value * 16 is used, with 11 bits; 16 keeps scales down to the
// smallest (1e-4 / 448) out of f16's subnormal range by and large. With fewer lines, or fp8_query,
// S is a product of e4m3: queries are the sum of two e4m3 terms (exact for bf16 but for values
// below 2^-10 of the line's largest) or one. The tensor cores keep about 13 bits while they add
// those, so a few steps are added up at a time, times the tokens' scales where there are some, then
// in fp32. This file: traits, shared memory, producers, queries.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/device/wgmma.cuh"
#include "kernels/sm90/sparse_mla_tile.cuh"

namespace winnow::kernels::sm90::f16 {

using layout::LatentLayout;

constexpr int kTokens = kTileTokens;
// As kMaxSlack, for f16 weights: below 2^15.
constexpr float kSlack = 14.0f;
constexpr float kNoTop = -1e30f;  // the running maximum of a line that has seen no token

// kFp8Query: queries are rounded to e4m3.
template <LatentLayout kLayout_, int kLines_, bool kGrouped_, bool kFp8Query_>
struct Traits {
  static constexpr LatentLayout kLayout = kLayout_;
  static constexpr int kLines = kLines_;
  static constexpr bool kGrouped = kGrouped_;
  static constexpr bool kFp8Query = kFp8Query_;
  static_assert(!kFp8Query || kLayout == LatentLayout::kFp8_576);
  static constexpr bool kRopeBf16 = kLayout != LatentLayout::kFp8_576;
  static constexpr bool kGroupScales = kLayout == LatentLayout::kFp8_656;
  static constexpr bool kTokenScale = kLayout == LatentLayout::kFp8_644;
  static constexpr bool kScaled = kGroupScales || kTokenScale;
  static constexpr int kScales = kGroupScales ? 4 : 1;  // of a token
  static constexpr int kRowBytes = kLayout == LatentLayout::kFp8_576   ? 576
                                   : kLayout == LatentLayout::kFp8_644 ? 640
                                                                       : 656;
  // An odd number of 16-byte chunks: ldmatrix meets no bank twice.
  static constexpr int kRowStride = kLayout == LatentLayout::kFp8_576 ? 592 : 656;
  static constexpr int kRopeOffset = kGroupScales ? 528 : 512;
  // From a token's scales in shared memory to those of the eighth behind it.
  static constexpr int kScaleStep = kGroupScales ? 8 * kRowStride : 32;
  static constexpr int kStageBytes = kTokens * kRowStride;
  static constexpr int kTileBytes = kLines * 128;  // of queries: 128 bytes of each line
  // Terms of e4m3 that a query has; 0: one of f16.
  static constexpr int kTerms = kFp8Query ? 1 : kLines == 64 ? 0 : 2;
  // Of queries: eight tiles of f16 or four a term of e4m3, then the roped channels: bf16, f16 or 64
  // bytes a term.
  static constexpr int kRopeTile = kTerms == 0 ? 8 : kTerms * 4;
  static constexpr int kQueryBytes = (kRopeTile + 1) * kTileBytes;
  // S of e4m3 in steps of 32 channels: kSteps in all, kGroup of them under way at a time (and as
  // many loaded for the next), kChain added up by the tensor cores.
  static constexpr int kSteps = kRopeBf16 ? 16 : 18;
  static constexpr int kGroup = kFp8Query ? 6 : kScaled ? 4 : 2;
  static constexpr int kChain = kFp8Query ? 18 : !kScaled ? 6 : kGroupScales ? 4 : 8;
  // Up to 16 lines: two blocks on a multiprocessor, so that two chains of scores and softmax run.
  static constexpr int kBlocks = kLines <= 16 ? 2 : 1;
  static constexpr int kOutputs = kLines <= 16 ? 1 : 2;  // warpgroups
  static constexpr int kThreads = 256 + kOutputs * 128;
  // S is [line][64 tokens] in fp32, 2 KiB for 8 lines. With 64 lines weights take its place, the
  // tile of 8 lines in the first half of theirs.
  static constexpr int kScoreBytes = kLines * 256;
  static constexpr bool kInPlace = kLines == 64;
  static constexpr int kWeightBytes = kInPlace ? 0 : kTileBytes;
  static constexpr int kWeightStride = kInPlace ? 2048 : 1024;  // of 8 lines
  static constexpr int kThreadsOfLine = kOutputs * 128 / kLines;
  static constexpr int kOtherBytes = 3584;  // what Shared has beside those, queries and stages
  static constexpr int kMostShared = 233472 / kBlocks - 1024;
  static constexpr int kRoom =
      (kMostShared - kSwizzleBytes - kQueryBytes - kScoreBytes - kWeightBytes - kOtherBytes) /
      kStageBytes;
  static constexpr int kStages = kRoom < 4 ? kRoom : 4;
  static constexpr int kTiles = 8 / kOutputs;  // of 64 channels, of an output warpgroup
  static constexpr int kPairs = kLines / 8;    // of lines a thread holds: 8j + 2t, 8j + 2t + 1
  static constexpr float kUnit = kScaled ? 16.0f : 1.0f;  // widened latent channels over true ones
  static constexpr float kLargestScale = 65504.0f / 448 / kUnit;
  // Queries are scaled by a power of two a line, the largest magnitude to [2^e, 2^(e + 1)).
  static constexpr int kQueryExponent = kTerms == 0 ? 14 : 7;
  // Registers of a thread by role; `kRegisters` are those of all four, or of three warpgroups.
  static constexpr int kRegisters = kBlocks == 2 ? 240 : 512;
  static constexpr int kProducerRegisters = kLines == 32 ? 40 : 24;
  static constexpr int kScoreRegisters = kFp8Query      ? 120
                                         : kLines == 64 ? 104
                                         : kLines == 32 ? 136
                                                        : 88;
  static constexpr int kOutputRegisters = kFp8Query      ? 184
                                          : kLines == 64 ? 192
                                          : kLines == 32 ? 168
                                                         : 128;
  static_assert(kProducerRegisters + kScoreRegisters + kOutputs * kOutputRegisters <= kRegisters);
};

template <class T>
struct Shared {
  uint8_t q[T::kQueryBytes];  // tiles of [line][128 bytes]
  uint8_t s[T::kScoreBytes];
  uint8_t p[T::kWeightBytes];  // f16 [line][64 tokens], unless in place
  uint8_t kv[T::kStages][T::kStageBytes];
  __half v_scale[T::kScales][kTokens];
  float scale[T::kLines];  // score to base-2 logit
  float rescale[T::kLines];
  float inverse_sum[2][T::kLines];
  float token_scale[T::kStages][T::kTokenScale ? kTokens : 1];
  alignas(16)
      uint32_t moved[T::kOutputs * 4];  // a warp's part of rescale holds something else than ones
  uint16_t valid[T::kStages][4];        // a bit a token
  Mbarrier full[T::kStages];
  Mbarrier empty[T::kStages];
  Mbarrier scores_full;
  Mbarrier scores_empty;  // and the weights' place, and V's scales
};

__device__ __forceinline__ uint32_t multiply_half2(uint32_t a, uint32_t b) {
  const __half2 product =
      __hmul2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const uint32_t*>(&product);
}
__device__ __forceinline__ uint32_t pack_half(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Brings tokens, stage after stage, through all items of this block: warp w those of
// [16w, 16w + 16), lane l < 16 token 16w + l.
template <class T>
struct Producer {
  const SparseMlaCall& call;
  Shared<T>& shared;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  int64_t items = 0, index = 0;
  TileItem item = {};
  int blocks = 0, next = 0;            // of the item
  int32_t slot = -1, slot_ahead = -1;  // a block ahead, because slots come from device memory
  bool live = false, live_ahead = false;

  __device__ __forceinline__ void open() {
    for (; index < items; index += gridDim.x) {
      item = tile_item<T::kGrouped, T::kLines>(call, index);
      blocks = item.blocks();
      next = 0;
      if (blocks > 0) return;
    }
  }
  __device__ __forceinline__ void next_block() {
    slot = slot_ahead;
    live = live_ahead;
    live_ahead = index < items;
    if (!live_ahead) return;
    const int at = item.begin + next * kTokens + warp * 16 + lane % 16;
    slot_ahead = at < item.end ? __ldg(item.slots + at) : -1;
    if (++next == blocks) {
      index += gridDim.x;
      open();
    }
  }
  // Tokens that do not count become zeros: whatever lay there could be NaN.
  __device__ __forceinline__ void clear(uint32_t rows, uint32_t to) const {
    for (; rows != 0; rows &= rows - 1) {
      const uint32_t row = to + (__ffs(static_cast<int>(rows)) - 1) * T::kRowStride;
      for (int chunk = lane; chunk < T::kRowBytes / 16; chunk += 32) {
        store_shared_16(row + chunk * 16, make_uint4(0, 0, 0, 0));
      }
    }
    fence_proxy_async();  // later copies into these rows come behind
  }
  __device__ __forceinline__ void copy(uint32_t stage) {
    const bool valid = slot_is_valid(call, slot);
    const uint32_t votes = __ballot_sync(0xffffffffu, valid) & 0xffff;
    const uint32_t to = smem_address(shared.kv[stage]) + warp * 16 * T::kRowStride;
    const auto* cache = static_cast<const uint8_t*>(call.p.cache);
    if (votes != 0xffff) clear(votes ^ 0xffff, to);
    if constexpr (T::kTokenScale) {
      if (lane < 16) {
        const int64_t at = valid ? slot / kPageSize * call.p.page_stride_bytes +
                                       kPageSize * T::kRowBytes + slot % kPageSize * 4
                                 : 0;
        cp_async_4(smem_address(&shared.token_scale[stage][warp * 16 + lane]), cache + at,
                   valid ? 4 : 0);
      }
      shared.full[stage].arrive_after_cp_async();
    }
    __syncwarp();
    // Every lane has cleared something, so each says for itself that it is done.
    if (lane == 0) {
      shared.valid[stage][warp] = static_cast<uint16_t>(votes);
      shared.full[stage].arrive_expect_bytes(__popc(votes) * T::kRowBytes);
    } else {
      shared.full[stage].arrive();
    }
    __syncwarp();
    if (lane < 16 && valid) {
      bulk_copy(to + lane * T::kRowStride, cache + slot_offset(call, slot, T::kRowBytes),
                T::kRowBytes, smem_address(&shared.full[stage]));
    }
  }
  __device__ __forceinline__ void run() {
    items = sparse_mla_items(call);
    index = blockIdx.x;
    open();
    next_block();
    next_block();
    uint32_t stage = 0, parity = 1;
    while (live) {
      shared.empty[stage].wait(parity);
      copy(stage);
      next_block();
      if (++stage == T::kStages) stage = 0, parity ^= 1;
    }
  }
};

__device__ __forceinline__ uint32_t max_of_magnitudes(uint32_t a, uint32_t b) {
  const __nv_bfloat162 high = __hmax2(__habs2(*reinterpret_cast<const __nv_bfloat162*>(&a)),
                                      __habs2(*reinterpret_cast<const __nv_bfloat162*>(&b)));
  return *reinterpret_cast<const uint32_t*>(&high);
}
__device__ __forceinline__ float bf16_low(uint32_t v) { return __uint_as_float(v << 16); }
__device__ __forceinline__ float bf16_high(uint32_t v) { return __uint_as_float(v & 0xffff0000u); }

// 16 channels of a line, times up, the 16-byte chunks `chunk` and on of its 128 bytes at `to`, or
// the one chunk a term of e4m3, `term_bytes` apart. As f16: channels 4i, 4i + 1 in the first chunk
// and 4i + 2, 4i + 3 in the second one, the order in which four e4m3 come out of ldmatrix.
template <class T>
__device__ __forceinline__ void store_channels(const uint4& a,
                                               const uint4& b,
                                               float up,
                                               uint32_t to,
                                               int chunk,
                                               int swizzle,
                                               int term_chunks) {
  const uint32_t words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  if constexpr (T::kTerms == 0) {
    uint32_t out[8];
#pragma unroll
    for (int k = 0; k < 8; ++k)
      out[k] = pack_half(bf16_low(words[k]) * up, bf16_high(words[k]) * up);
    store_shared_16(to + ((chunk * 2 ^ swizzle) << 4), make_uint4(out[0], out[2], out[4], out[6]));
    store_shared_16(to + (((chunk * 2 + 1) ^ swizzle) << 4),
                    make_uint4(out[1], out[3], out[5], out[7]));
    return;
  }
  uint32_t out[2][4] = {};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float low = bf16_low(words[k]) * up, high = bf16_high(words[k]) * up;
    const uint16_t first = f32x2_to_e4m3x2(low, high);
    out[0][k / 2] |= uint32_t{first} << (k % 2 * 16);
    if constexpr (T::kTerms == 2) {
      const uint32_t wide = e4m3x2_to_f16x2(first);
      const float2 back = __half22float2(*reinterpret_cast<const __half2*>(&wide));
      out[1][k / 2] |= uint32_t{f32x2_to_e4m3x2(low - back.x, high - back.y)} << (k % 2 * 16);
    }
  }
#pragma unroll
  for (int term = 0; term < T::kTerms; ++term) {
    // Whole tiles on, or within the line's 128 bytes.
    const int tiles = term * term_chunks / 8;
    store_shared_16(
        to + tiles * T::kTileBytes + (((chunk + term * term_chunks % 8) ^ swizzle) << 4),
        make_uint4(out[term][0], out[term][1], out[term][2], out[term][3]));
  }
}

// The item's queries to shared memory, by the score warpgroup; lines that stand for no head are
// zero.
template <class T>
__device__ __forceinline__ void load_queries(const SparseMlaCall& call,
                                             const TileItem& item,
                                             Shared<T>& shared) {
  constexpr int kAtOnce = T::kLines / 4 < 4 ? T::kLines / 4 : 4;
  constexpr float kUnitOfS = T::kTerms == 0 ? T::kUnit : 1.0f;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const uint32_t q = smem_address(shared.q);
  named_barrier_sync(1, 128);  // all warps are done with the item before
#pragma unroll 1
  for (int first = 0; first < T::kLines / 4; first += kAtOnce) {
    uint4 raw[kAtOnce][2];
    uint32_t rope[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      int64_t index;
      const int line = warp * (T::kLines / 4) + first + k;
      const bool in = tile_line<T::kGrouped, T::kLines>(call, item, line, index);
      const auto* latent = reinterpret_cast<const uint4*>(
          static_cast<const __nv_bfloat16*>(call.p.q_latent) + index * kLatentDim + lane * 16);
      raw[k][0] = in ? __ldg(latent) : make_uint4(0, 0, 0, 0);
      raw[k][1] = in ? __ldg(latent + 1) : make_uint4(0, 0, 0, 0);
      rope[k] =
          in ? __ldg(reinterpret_cast<const uint32_t*>(
                         static_cast<const __nv_bfloat16*>(call.p.q_rope) + index * kRopeDim) +
                     lane)
             : 0;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int line = warp * (T::kLines / 4) + first + k;
      const uint32_t pairs =
          max_of_magnitudes(max_of_magnitudes(max_of_magnitudes(raw[k][0].x, raw[k][0].y),
                                              max_of_magnitudes(raw[k][0].z, raw[k][0].w)),
                            max_of_magnitudes(max_of_magnitudes(raw[k][1].x, raw[k][1].y),
                                              max_of_magnitudes(raw[k][1].z, raw[k][1].w)));
      const uint32_t all =
          T::kRopeBf16 && T::kTerms > 0 ? pairs : max_of_magnitudes(pairs, rope[k]);
      // Magnitudes order like their bits.
      const uint32_t high = __reduce_max_sync(0xffffffffu, max(all & 0xffff, all >> 16));
      const int exponent = static_cast<int>(high >> 7) - 127;
      int shift = high > 0 && exponent < 128 ? T::kQueryExponent - exponent : 0;
      shift = min(max(shift, -120), 100);
      const float up = __uint_as_float(static_cast<uint32_t>(shift + 127) << 23);
      if (lane == 0) {
        const float down = __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
        shared.scale[line] = call.p.softmax_scale * kLog2e * down * call.p.cache_scale / kUnitOfS;
      }
      const uint32_t to = q + line * 128;
      const int swizzle = line & 7;
      constexpr int kLanesOfTile = T::kTerms == 0 ? 4 : 8;
      store_channels<T>(raw[k][0], raw[k][1], up, to + lane / kLanesOfTile * T::kTileBytes,
                        lane % kLanesOfTile, swizzle, 32);
      const uint32_t rope_at = to + T::kRopeTile * T::kTileBytes;
      if constexpr (T::kRopeBf16) {
        // Channels 2 * lane and the next.
        store_shared_4(
            rope_at + ((lane / 4 ^ swizzle) << 4) + lane % 4 * 4,
            pack_bf16(bf16_low(rope[k]) * up * kUnitOfS, bf16_high(rope[k]) * up * kUnitOfS));
      } else {
        uint32_t v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = __shfl_sync(0xffffffffu, rope[k], lane % 4 * 8 + i);
        if (lane < 4) {
          store_channels<T>(make_uint4(v[0], v[1], v[2], v[3]), make_uint4(v[4], v[5], v[6], v[7]),
                            up, rope_at, lane, swizzle, 4);
        }
      }
    }
  }
  __syncwarp();
  fence_proxy_async();
  named_barrier_sync(1, 128);
}

}  // namespace winnow::kernels::sm90::f16
