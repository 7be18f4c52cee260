// Sparse MLA for few heads over e4m3 caches. KV tokens are the M side of warp-level products, so 8
// heads waste nothing: S^T[16 tokens x 8] = K Q^T and O^T[channels x 8] = V^T P^T. A group of
// kGroup warps owns an item (row, split, tile of 8 * kGroup heads); each warp takes 1 / kGroup of
// the channels in both products, and the partial scores are summed through shared memory. Tokens
// are widened from e4m3 to f16 (exact) between shared memory and the tensor cores, twice: as rows
// for K, transposed for V^T. Scales never touch the elements: they multiply the scores' parts and
// the weights. Groups are independent of each other; with one warp there is no barrier at all.
#include <cuda_fp16.h>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {
namespace {

using layout::LatentLayout;

constexpr int kUnitTokens = 8;  // of one gather step; two units make a tile
constexpr int kWarps = 8;       // of the largest block
constexpr int kBlockBytes = 232448;
// Queries are scaled by a power of two to [2^13, 2^14) before they become f16.
constexpr int kQueryExponent = 13;
// Below this a token's scale no longer lowers the bound on its weights.
constexpr float kSmallestScale = 1e-30f;

template <LatentLayout kLayout, int kGroup, bool kBulk>
struct Traits {
  static constexpr bool kRopeBf16 = kLayout != LatentLayout::kFp8_576;
  static constexpr bool kScaled = kLayout != LatentLayout::kFp8_576;
  static constexpr bool kTokenScale = kLayout == LatentLayout::kFp8_644;
  static constexpr int kRowBytes = kLayout == LatentLayout::kFp8_576   ? 576
                                   : kLayout == LatentLayout::kFp8_644 ? 640
                                                                       : 656;
  static constexpr int kRopeOffset = kLayout == LatentLayout::kFp8_656 ? 528 : 512;
  // An odd number of 16-byte units: eight rows at one column lie in eight different banks.
  static constexpr int kStride = kLayout == LatentLayout::kFp8_576 ? 592 : 656;
  static constexpr int kTokenScaleOffset = kUnitTokens * kStride;
  static constexpr int kUnitBytes = kUnitTokens * kStride + (kTokenScale ? 32 : 0);
  static constexpr int kExchangeBytes = kGroup > 1 ? kGroup* kGroup * 512 : 0;
  static constexpr int kGroupBudget = kBlockBytes * kGroup / kWarps / 128 * 128;
  static constexpr int kBarrierBytes = 128;
  static constexpr int kUnitsThatFit = (kGroupBudget - kExchangeBytes - kBarrierBytes) / kUnitBytes;
  static constexpr int kUnits = kUnitsThatFit < 8 ? kUnitsThatFit : 8;
  static constexpr int kGroupBytes =
      (kUnits * kUnitBytes + kExchangeBytes + kBarrierBytes + 127) / 128 * 128;
  static constexpr int kRowsOfWarp = kUnitTokens / kGroup;
  static constexpr int kChannels = kLatentDim / kGroup;  // latent channels of a warp
  static constexpr int kRopeChannels = kRopeDim / kGroup;
  // Score parts that carry different scales: one for each 128 channels, one for the rope.
  static constexpr int kParts = kChannels / 128;
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kTail = kChunks - 32;  // 16-byte chunks past the first 512 bytes
  static_assert(kUnits >= 4 && kUnits * 8 <= 64);
};

// Row r of a tile's half is this token of the unit: rows r and r + 1 then lie in different halves
// of the banks for 64-byte reads.
__device__ __forceinline__ int token_of_row(int r) { return (r >> 1) + 4 * (r & 1); }

template <LatentLayout kLayout, int kGroup, bool kBulk>
struct Narrow {
  using T = Traits<kLayout, kGroup, kBulk>;

  const SparseMlaCall& call;
  uint32_t smem;       // of this group
  Mbarrier* barriers;  // kBulk: one a unit
  int warp;            // of the group
  int lane, g, t;
  int barrier_id;

  SparseMlaItem item;
  const int32_t* slots;
  uint64_t valid_queue;  // 8 bits a unit under way, the oldest lowest
  int pending;
  uint32_t issued, consumed;  // units since the start of the kernel

  __device__ __forceinline__ void sync_group() const {
    if constexpr (kGroup == 1) {
      __syncwarp();
    } else {
      named_barrier_sync(barrier_id, kGroup * 32);
    }
  }

  // Starts the gather of the item's unit `unit` (8 tokens); past the end everything is zero.
  __device__ __forceinline__ void issue(int unit, int32_t slot) {
    const bool valid = slot_is_valid(call, slot);
    const uint32_t mask = __ballot_sync(0xffffffffu, valid) & 0xff;
    valid_queue |= static_cast<uint64_t>(mask) << (8 * pending);
    ++pending;
    const uint32_t index = issued % T::kUnits;
    ++issued;
    const uint32_t to = smem + index * T::kUnitBytes;
    const int64_t offset = valid ? slot_offset(call, slot, T::kRowBytes) : 0;
    const auto* cache = static_cast<const uint8_t*>(call.p.cache);
    if constexpr (T::kTokenScale) {
      if (lane < kUnitTokens && lane / T::kRowsOfWarp == warp) {
        const int64_t scale_at =
            valid ? static_cast<int64_t>(slot / kPageSize) * call.p.page_stride_bytes +
                        kPageSize * T::kRowBytes + slot % kPageSize * 4
                  : 0;
        cp_async_4(to + T::kTokenScaleOffset + lane * 4, cache + scale_at, valid ? 4 : 0);
      }
    }
    if constexpr (kBulk) {
      if (mask != 0xff) {
        for (int row = warp * T::kRowsOfWarp; row < (warp + 1) * T::kRowsOfWarp; ++row) {
          if ((mask >> row & 1) != 0) continue;
          for (int chunk = lane; chunk < T::kChunks; chunk += 32) {
            store_shared_16(to + row * T::kStride + chunk * 16, make_uint4(0, 0, 0, 0));
          }
        }
        __syncwarp();
      }
      const bool mine = lane < kUnitTokens && lane / T::kRowsOfWarp == warp;
      const uint32_t rows_here =
          __popc(mask >> (warp * T::kRowsOfWarp) & ((1u << T::kRowsOfWarp) - 1));
      if (lane == 0) barriers[index].arrive_expect_bytes(rows_here * T::kRowBytes);
      __syncwarp();
      if (mine && valid) {
        bulk_copy(to + lane * T::kStride, cache + offset, T::kRowBytes,
                  smem_address(&barriers[index]));
      }
      if constexpr (T::kTokenScale) cp_async_commit();
    } else {
#pragma unroll
      for (int i = 0; i < T::kRowsOfWarp; ++i) {
        const int row = warp * T::kRowsOfWarp + i;
        const uint8_t* from = cache + __shfl_sync(0xffffffffu, offset, row) + lane * 16;
        cp_async_16(to + row * T::kStride + lane * 16, from, (mask >> row & 1) != 0 ? 16 : 0);
      }
      constexpr int kRowsAtOnce = 32 / T::kTail;
#pragma unroll
      for (int i = 0; i < (T::kRowsOfWarp + kRowsAtOnce - 1) / kRowsAtOnce; ++i) {
        const int in_warp = i * kRowsAtOnce + lane / T::kTail;
        const int row = warp * T::kRowsOfWarp + in_warp;
        const int64_t tail_offset = __shfl_sync(0xffffffffu, offset, row & 31);
        if (lane / T::kTail < kRowsAtOnce && in_warp < T::kRowsOfWarp) {
          const int byte = 512 + lane % T::kTail * 16;
          cp_async_16(to + row * T::kStride + byte, cache + tail_offset + byte,
                      (mask >> row & 1) != 0 ? 16 : 0);
        }
      }
      cp_async_commit();
    }
  }

  __device__ __forceinline__ int32_t load_slot(int unit) const {
    const int at = item.begin + unit * kUnitTokens + lane;
    return lane < kUnitTokens && at < item.end ? __ldg(slots + at) : -1;
  }

  // Q as B fragments: thread (g, t) holds head 8n + g; for the k step s of 64 channels the four
  // channels 16t + 4s .. 16t + 4s + 3, as K's rows are read.
  __device__ __forceinline__ void load_queries(uint32_t (&q)[T::kChannels / 64][4][kGroup][2],
                                               uint32_t (&q_rope)[4 / kGroup][kGroup][2],
                                               float (&unscale)[kGroup][2]) const {
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
      const int head = item.head_begin + n * 8 + g;
      const bool in = head < call.p.num_heads;
      const int64_t at = item.row * call.p.num_heads + (in ? head : 0);
      const auto* latent = static_cast<const __nv_bfloat16*>(call.p.q_latent) + at * kLatentDim +
                           warp * T::kChannels + t * 16;
      const auto* rope = static_cast<const __nv_bfloat16*>(call.p.q_rope) + at * kRopeDim +
                         warp * T::kRopeChannels + t * (16 / kGroup);
      uint32_t raw[T::kChannels / 64][8];
      uint32_t raw_rope[8 / kGroup];
      float high = 0;
#pragma unroll
      for (int b = 0; b < T::kChannels / 64; ++b) {
#pragma unroll
        for (int w = 0; w < 8; w += 4) {
          const uint4 v = in ? __ldg(reinterpret_cast<const uint4*>(latent + b * 64 + w * 2))
                             : make_uint4(0, 0, 0, 0);
          raw[b][w] = v.x, raw[b][w + 1] = v.y, raw[b][w + 2] = v.z, raw[b][w + 3] = v.w;
        }
#pragma unroll
        for (int w = 0; w < 8; ++w) high = fmaxf(high, top_of_pair(raw[b][w]));
      }
#pragma unroll
      for (int w = 0; w < 8 / kGroup; ++w) {
        raw_rope[w] = in ? __ldg(reinterpret_cast<const uint32_t*>(rope) + w) : 0;
        high = fmaxf(high, top_of_pair(raw_rope[w]));
      }
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
      // 1 for a row of zeros or of NaN.
      const int exponent = static_cast<int>(__float_as_uint(high) >> 23) - 127;
      int shift = high > 0 && exponent < 128 ? kQueryExponent - exponent : 0;
      shift = min(max(shift, -120), 120);
      const float up = __uint_as_float(static_cast<uint32_t>(shift + 127) << 23);
      const float down = __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
#pragma unroll
      for (int b = 0; b < T::kChannels / 64; ++b) {
#pragma unroll
        for (int w = 0; w < 8; ++w) q[b][w / 2][n][w % 2] = to_f16x2(raw[b][w], up);
      }
#pragma unroll
      for (int w = 0; w < 8 / kGroup; ++w) {
        q_rope[w / 2][n][w % 2] =
            T::kRopeBf16 ? scale_bf16x2(raw_rope[w], up) : to_f16x2(raw_rope[w], up);
      }
      // Accumulator columns are heads 8n + 2t and the next: their factors come from lanes 8t, 8t
      // + 4.
      const float factor = down * call.p.softmax_scale * kLog2e * call.p.cache_scale;
      unscale[n][0] = __shfl_sync(0xffffffffu, factor, t * 8);
      unscale[n][1] = __shfl_sync(0xffffffffu, factor, t * 8 + 4);
    }
  }

  static __device__ __forceinline__ float top_of_pair(uint32_t pair) {
    return fmaxf(fabsf(__uint_as_float(pair << 16)), fabsf(__uint_as_float(pair & 0xffff0000u)));
  }
  static __device__ __forceinline__ uint32_t to_f16x2(uint32_t pair, float up) {
    const __half2 h = __floats2half2_rn(__uint_as_float(pair << 16) * up,
                                        __uint_as_float(pair & 0xffff0000u) * up);
    return *reinterpret_cast<const uint32_t*>(&h);
  }
  static __device__ __forceinline__ uint32_t scale_bf16x2(uint32_t pair, float up) {
    return pack_bf16(__uint_as_float(pair << 16) * up, __uint_as_float(pair & 0xffff0000u) * up);
  }
  static __device__ __forceinline__ uint32_t pack_f16(float low, float high) {
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&h);
  }

  __device__ __forceinline__ void run_item(float (&o)[T::kChannels / 16][kGroup][4]);
  __device__ __forceinline__ void scores(const uint32_t (&unit)[2],
                                         const uint32_t (&q)[T::kChannels / 64][4][kGroup][2],
                                         const uint32_t (&q_rope)[4 / kGroup][kGroup][2],
                                         const float (&scale)[2][T::kParts],
                                         float (&x)[kGroup][4]) const;
  __device__ __forceinline__ void store(float (&o)[T::kChannels / 16][kGroup][4],
                                        const float (&inverse)[kGroup][2]) const;
};

template <LatentLayout kLayout, int kGroup, bool kBulk>
__device__ __forceinline__ void Narrow<kLayout, kGroup, kBulk>::scores(
    const uint32_t (&unit)[2],
    const uint32_t (&q)[T::kChannels / 64][4][kGroup][2],
    const uint32_t (&q_rope)[4 / kGroup][kGroup][2],
    const float (&scale)[2][T::kParts],
    float (&x)[kGroup][4]) const {
  const uint32_t row_at = token_of_row(g) * T::kStride;
  float part[T::kParts + 1][kGroup][4];
#pragma unroll
  for (int p = 0; p <= T::kParts; ++p) {
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) part[p][n][c] = 0;
    }
  }
#pragma unroll
  for (int b = 0; b < T::kChannels / 64; ++b) {
    const uint32_t column = warp * T::kChannels + b * 64 + t * 16;
    const uint4 low = load_shared_16(unit[0] + row_at + column);
    const uint4 high = load_shared_16(unit[1] + row_at + column);
    const uint32_t lows[4] = {low.x, low.y, low.z, low.w};
    const uint32_t highs[4] = {high.x, high.y, high.z, high.w};
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const uint32_t a0 = low_e4m3x2_to_f16x2(lows[s]), a2 = high_e4m3x2_to_f16x2(lows[s]);
      const uint32_t a1 = low_e4m3x2_to_f16x2(highs[s]), a3 = high_e4m3x2_to_f16x2(highs[s]);
#pragma unroll
      for (int n = 0; n < kGroup; ++n) {
        mma_f16(part[b / 2][n], a0, a1, a2, a3, q[b][s][n][0], q[b][s][n][1]);
      }
    }
  }
  // The rope: 16 / kGroup channels a thread.
#pragma unroll
  for (int s = 0; s < 4 / kGroup; ++s) {
    uint32_t a0, a1, a2, a3;
    const uint32_t channel = warp * T::kRopeChannels + t * (16 / kGroup) + s * 4;
    if constexpr (T::kRopeBf16) {
      const uint32_t at = row_at + T::kRopeOffset + channel * 2;
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a0), "=r"(a2) : "r"(unit[0] + at));
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a1), "=r"(a3) : "r"(unit[1] + at));
    } else {
      const uint32_t at = row_at + T::kRopeOffset + channel;
      uint32_t low, high;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(low) : "r"(unit[0] + at));
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(high) : "r"(unit[1] + at));
      a0 = low_e4m3x2_to_f16x2(low), a2 = high_e4m3x2_to_f16x2(low);
      a1 = low_e4m3x2_to_f16x2(high), a3 = high_e4m3x2_to_f16x2(high);
    }
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
      if constexpr (T::kRopeBf16) {
        mma_bf16(part[T::kParts][n], a0, a1, a2, a3, q_rope[s][n][0], q_rope[s][n][1]);
      } else {
        mma_f16(part[T::kParts][n], a0, a1, a2, a3, q_rope[s][n][0], q_rope[s][n][1]);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kGroup; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      x[n][c] = part[T::kParts][n][c];
#pragma unroll
      for (int p = 0; p < T::kParts; ++p) {
        x[n][c] =
            T::kScaled ? fmaf(part[p][n][c], scale[c / 2][p], x[n][c]) : x[n][c] + part[p][n][c];
      }
    }
  }
}

template <LatentLayout kLayout, int kGroup, bool kBulk>
__device__ __forceinline__ void Narrow<kLayout, kGroup, kBulk>::run_item(
    float (&o)[T::kChannels / 16][kGroup][4]) {
  const int units = (item.end - item.begin + kUnitTokens - 1) / kUnitTokens;
  const int tiles = (units + 1) / 2;
  const uint32_t exchange = smem + T::kUnits * T::kUnitBytes;
  uint32_t q[T::kChannels / 64][4][kGroup][2], q_rope[4 / kGroup][kGroup][2];
  float unscale[kGroup][2];
  valid_queue = 0;
  pending = 0;
  sync_group();  // the item before is read
#pragma unroll
  for (int u = 0; u < T::kUnits - 2; ++u) issue(u, load_slot(u));
  int32_t next[2] = {load_slot(T::kUnits - 2), load_slot(T::kUnits - 1)};
  load_queries(q, q_rope, unscale);

  float top[kGroup][2], sum[kGroup][2];
#pragma unroll
  for (int n = 0; n < kGroup; ++n) {
    top[n][0] = top[n][1] = -INFINITY;
    sum[n][0] = sum[n][1] = 0;
#pragma unroll
    for (int i = 0; i < T::kChannels / 16; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) o[i][n][c] = 0;
    }
  }

  for (int tile = 0; tile < tiles; ++tile) {
    const uint32_t index[2] = {consumed % T::kUnits, (consumed + 1) % T::kUnits};
    if constexpr (kBulk) {
      barriers[index[0]].wait((consumed / T::kUnits) & 1);
      barriers[index[1]].wait(((consumed + 1) / T::kUnits) & 1);
      if constexpr (T::kTokenScale) cp_async_wait<T::kUnits - 4>();
    } else {
      cp_async_wait<T::kUnits - 4>();
    }
    consumed += 2;
    sync_group();
    const uint32_t valid = static_cast<uint32_t>(valid_queue) & 0xffff;
    valid_queue >>= 16;
    pending -= 2;
    issue(2 * tile + T::kUnits - 2, next[0]);
    issue(2 * tile + T::kUnits - 1, next[1]);
    next[0] = load_slot(2 * tile + T::kUnits);
    next[1] = load_slot(2 * tile + T::kUnits + 1);

    const uint32_t unit[2] = {smem + index[0] * T::kUnitBytes, smem + index[1] * T::kUnitBytes};
    const int token = token_of_row(g);
    float scale[2][T::kParts];        // of this thread's two tokens
    float highest_scale[2] = {0, 0};  // log2, over all parts of the token
    if constexpr (T::kScaled) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if constexpr (T::kTokenScale) {
          float s;
          asm volatile("ld.shared.f32 %0, [%1];"
                       : "=f"(s)
                       : "r"(unit[r] + T::kTokenScaleOffset + token * 4));
#pragma unroll
          for (int p = 0; p < T::kParts; ++p) scale[r][p] = s;
          highest_scale[r] = log2_fast(fmaxf(s, kSmallestScale));
        } else {
          const uint4 v = load_shared_16(unit[r] + token * T::kStride + 512);
          const float all[4] = {__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
                                __uint_as_float(v.w)};
#pragma unroll
          for (int p = 0; p < T::kParts; ++p) {
            scale[r][p] = kGroup == 1   ? all[p]
                          : kGroup == 2 ? (warp == 0 ? all[p] : all[(p + 2) % 4])
                                        : (warp < 2 ? (warp == 0 ? all[0] : all[1])
                                                    : (warp == 2 ? all[2] : all[3]));
          }
          highest_scale[r] =
              log2_fast(fmaxf(fmaxf(fmaxf(all[0], all[1]), fmaxf(all[2], all[3])), kSmallestScale));
        }
      }
    }
    float x[kGroup][4];
    scores(unit, q, q_rope, scale, x);
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) x[n][c] *= unscale[n][c % 2];
    }
    if constexpr (kGroup > 1) {
#pragma unroll
      for (int n = 0; n < kGroup; ++n) {
        store_shared_16(exchange + (warp * kGroup + n) * 512 + lane * 16,
                        make_uint4(__float_as_uint(x[n][0]), __float_as_uint(x[n][1]),
                                   __float_as_uint(x[n][2]), __float_as_uint(x[n][3])));
        x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
      }
      sync_group();
#pragma unroll
      for (int n = 0; n < kGroup; ++n) {
#pragma unroll
        for (int w = 0; w < kGroup; ++w) {
          const uint4 v = load_shared_16(exchange + (w * kGroup + n) * 512 + lane * 16);
          x[n][0] += __uint_as_float(v.x);
          x[n][1] += __uint_as_float(v.y);
          x[n][2] += __uint_as_float(v.z);
          x[n][3] += __uint_as_float(v.w);
        }
      }
    }
    const bool in[2] = {(valid >> token & 1) != 0, (valid >> (token + 8) & 1) != 0};
    // The maximum bounds weight * scale, so that f16 holds the product whatever the scales are.
    bool moved = false;
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (!in[c / 2]) x[n][c] = -INFINITY;
        const float bound = x[n][c] + (T::kScaled && in[c / 2] ? highest_scale[c / 2] : 0.0f);
        moved = moved || bound > top[n][c % 2] + kMaxSlack;
      }
    }
    if (__any_sync(0xffffffffu, moved)) {
#pragma unroll
      for (int n = 0; n < kGroup; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float high = fmaxf(x[n][c] + (T::kScaled && in[0] ? highest_scale[0] : 0.0f),
                             x[n][c + 2] + (T::kScaled && in[1] ? highest_scale[1] : 0.0f));
          high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 4));
          high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 8));
          high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 16));
          if (high > top[n][c] + kMaxSlack) {
            const float factor = exp2_fast(top[n][c] - high);
            top[n][c] = high;
            sum[n][c] *= factor;
#pragma unroll
            for (int i = 0; i < T::kChannels / 16; ++i) {
              o[i][n][c] *= factor;
              o[i][n][c + 2] *= factor;
            }
          }
        }
      }
    }
    uint32_t b[T::kScaled ? T::kParts : 1][kGroup][2];
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
      float w[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float base = top[n][c % 2] == -INFINITY ? 0.0f : top[n][c % 2];
        w[c] = exp2_fast(x[n][c] - base);
        sum[n][c % 2] += w[c];
      }
#pragma unroll
      for (int p = 0; p < (T::kScaled ? T::kParts : 1); ++p) {
        if (T::kTokenScale && p > 0) {
          b[p][n][0] = b[0][n][0];
          b[p][n][1] = b[0][n][1];
          continue;
        }
        const float s0 = T::kScaled ? scale[0][p] : 1.0f, s1 = T::kScaled ? scale[1][p] : 1.0f;
        b[p][n][0] = movmatrix_trans(pack_f16(w[0] * s0, w[1] * s0));
        b[p][n][1] = movmatrix_trans(pack_f16(w[2] * s1, w[3] * s1));
      }
    }
    // O^T += V^T P^T: two 16-channel tiles a load; bytes of two tokens are zipped, then widened.
    const uint32_t row_at = token_of_row(lane % 8) * T::kStride + warp * T::kChannels +
                            (lane / 16) * 16 + ((lane / 8) & 1 ? unit[1] : unit[0]);
#pragma unroll
    for (int i = 0; i < T::kChannels / 16; i += 2) {
      uint32_t v[4];
      ldmatrix_x4_trans(v, row_at + i * 16);
      const int p = T::kScaled ? i / 8 : 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t low = __byte_perm(v[half * 2], 0, 0x3120);
        const uint32_t high = __byte_perm(v[half * 2 + 1], 0, 0x3120);
        const uint32_t a0 = low_e4m3x2_to_f16x2(low), a1 = high_e4m3x2_to_f16x2(low);
        const uint32_t a2 = low_e4m3x2_to_f16x2(high), a3 = high_e4m3x2_to_f16x2(high);
#pragma unroll
        for (int n = 0; n < kGroup; ++n) {
          mma_f16(o[i + half][n], a0, a1, a2, a3, b[p][n][0], b[p][n][1]);
        }
      }
    }
  }
  // What was issued past the end has to land before the ring is used again.
  if constexpr (kBulk) {
    while (consumed < issued) {
      barriers[consumed % T::kUnits].wait((consumed / T::kUnits) & 1);
      ++consumed;
    }
    if constexpr (T::kTokenScale) cp_async_wait<0>();
  } else {
    cp_async_wait<0>();
    consumed = issued;
  }

  float inverse[kGroup][2];
#pragma unroll
  for (int n = 0; n < kGroup; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float& l = sum[n][c];
      l += __shfl_xor_sync(0xffffffffu, l, 4);
      l += __shfl_xor_sync(0xffffffffu, l, 8);
      l += __shfl_xor_sync(0xffffffffu, l, 16);
      inverse[n][c] = l > 0 ? call.p.cache_scale / l : 0.0f;
      const int head = item.head_begin + n * 8 + t * 2 + c;
      if (warp == 0 && g == 0 && head < call.p.num_heads) {
        const float lse = l > 0 ? top[n][c] + log2_fast(l) : -INFINITY;
        if (call.num_splits > 1) {
          call.partial_lse[(item.row * call.num_splits + item.split) * call.p.num_heads + head] =
              lse;
        } else if (call.p.lse != nullptr) {
          call.p.lse[item.row * call.p.num_heads + head] = lse * kLn2;
        }
      }
    }
  }
  store(o, inverse);
}

// o[i][n][c]: channel 16i + 2g + c / 2 of the warp's, head 8n + 2t + c % 2.
template <LatentLayout kLayout, int kGroup, bool kBulk>
__device__ __forceinline__ void Narrow<kLayout, kGroup, kBulk>::store(
    float (&o)[T::kChannels / 16][kGroup][4], const float (&inverse)[kGroup][2]) const {
#pragma unroll
  for (int n = 0; n < kGroup; ++n) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int head = item.head_begin + n * 8 + t * 2 + c;
      if (head >= call.p.num_heads) continue;
      const int column = warp * T::kChannels + g * 2;
      if (call.num_splits > 1) {
        float* to =
            call.partial_out +
            ((item.row * call.num_splits + item.split) * call.p.num_heads + head) * kLatentDim +
            column;
#pragma unroll
        for (int i = 0; i < T::kChannels / 16; ++i) {
          *reinterpret_cast<float2*>(to + i * 16) =
              make_float2(o[i][n][c] * inverse[n][c], o[i][n][c + 2] * inverse[n][c]);
        }
      } else {
        auto* to = static_cast<__nv_bfloat16*>(call.p.out) +
                   (item.row * call.p.num_heads + head) * kLatentDim + column;
#pragma unroll
        for (int i = 0; i < T::kChannels / 16; ++i) {
          *reinterpret_cast<uint32_t*>(to + i * 16) =
              pack_bf16(o[i][n][c] * inverse[n][c], o[i][n][c + 2] * inverse[n][c]);
        }
      }
    }
  }
}

template <LatentLayout kLayout, int kGroup, bool kBulk>
__global__ void __launch_bounds__(kWarps * 32, 1)
    sparse_mla_narrow_kernel(const __grid_constant__ SparseMlaCall call) {
  using T = Traits<kLayout, kGroup, kBulk>;
  extern __shared__ __align__(128) uint8_t raw[];
  const int group = threadIdx.x / (32 * kGroup), groups = blockDim.x / (32 * kGroup);
  uint8_t* mine = raw + group * T::kGroupBytes;
  auto* barriers =
      reinterpret_cast<Mbarrier*>(mine + T::kUnits * T::kUnitBytes + T::kExchangeBytes);
  if constexpr (kBulk) {
    if (threadIdx.x % (32 * kGroup) == 0) {
      for (int u = 0; u < T::kUnits; ++u) barriers[u].init(kGroup);
      fence_mbarrier_init();
    }
    __syncthreads();
  }
  const int lane = threadIdx.x % 32;
  Narrow<kLayout, kGroup, kBulk> narrow{.call = call,
                                        .smem = smem_address(mine),
                                        .barriers = barriers,
                                        .warp = static_cast<int>(threadIdx.x) / 32 % kGroup,
                                        .lane = lane,
                                        .g = lane / 4,
                                        .t = lane % 4,
                                        .barrier_id = group + 1,
                                        .item = {},
                                        .slots = nullptr,
                                        .valid_queue = 0,
                                        .pending = 0,
                                        .issued = 0,
                                        .consumed = 0};
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * groups + group; i < call.num_items;
       i += static_cast<int64_t>(gridDim.x) * groups) {
    narrow.item = sparse_mla_item(call, i, 8 * kGroup);
    narrow.slots = call.p.slots + narrow.item.row * call.p.slots_stride;
    float o[T::kChannels / 16][kGroup][4];
    narrow.run_item(o);
  }
}

template <LatentLayout kLayout, int kGroup, bool kBulk>
cudaError_t launch(const SparseMlaCall& call, const SparseMlaPlan& plan, cudaStream_t stream) {
  const int bytes = Traits<kLayout, kGroup, kBulk>::kGroupBytes * plan.groups_per_block;
  const cudaError_t error =
      cudaFuncSetAttribute(sparse_mla_narrow_kernel<kLayout, kGroup, kBulk>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, kBlockBytes);
  if (error != cudaSuccess) return error;
  sparse_mla_narrow_kernel<kLayout, kGroup, kBulk>
      <<<plan.grid, plan.groups_per_block * kGroup * 32, bytes, stream>>>(call);
  return cudaGetLastError();
}

template <LatentLayout kLayout, bool kBulk>
cudaError_t launch_layout(const SparseMlaCall& call,
                          const SparseMlaPlan& plan,
                          cudaStream_t stream) {
  switch (plan.head_tile) {
    case 8:
      return launch<kLayout, 1, kBulk>(call, plan, stream);
    case 16:
      return launch<kLayout, 2, kBulk>(call, plan, stream);
    case 32:
      return launch<kLayout, 4, kBulk>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_sparse_mla_narrow(const SparseMlaCall& call,
                                     const SparseMlaPlan& plan,
                                     cudaStream_t stream) {
  switch (plan.layout) {
    case LatentLayout::kFp8_576:
      return launch_layout<LatentLayout::kFp8_576, false>(call, plan, stream);
    case LatentLayout::kFp8_644:
      return launch_layout<LatentLayout::kFp8_644, false>(call, plan, stream);
    case LatentLayout::kFp8_656:
      return launch_layout<LatentLayout::kFp8_656, false>(call, plan, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
