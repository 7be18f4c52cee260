// How cached tokens and queries come into the shared memory of the wide sparse MLA kernel: bf16
// rows by cp.async as they are, e4m3 rows by cp.async and then widened to f16 in place.
// sparse_mla_wide.cuh includes it.
//
// e4m3 is exact in f16. Of layouts with scales, value * 16 is stored, with 11 bits; 16 keeps scales
// down to the smallest (1e-4 / 448) out of f16's subnormal range by and large.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90::wide {

using layout::LatentLayout;

constexpr int kHeads = 64;   // rows of the tile: heads of a row, or of several rows
constexpr int kTokens = 64;  // of a stage
constexpr int kStages = 2;
constexpr int kQuarters = 4;  // of a stage, 16 tokens each: one k step of P V
constexpr int kTiles = 9;     // of 64 channels: 8 latent, 1 rope
constexpr int kTileBytes = 64 * 128;
constexpr int kStageBytes = kTiles * kTileBytes;
constexpr int kThreads = 512;
constexpr int kBoundary = 1024;  // alignment of the swizzle pattern
// Queries for f16 are scaled by a power of two to [2^14, 2^15).
constexpr int kQueryExponent = 14;

template <LatentLayout kLayout>
struct Traits {
  static constexpr bool kHalf = kLayout != LatentLayout::kBf16_1152;
  static constexpr bool kGroupScales = kLayout == LatentLayout::kFp8_656;
  static constexpr bool kTokenScale = kLayout == LatentLayout::kFp8_644;
  static constexpr bool kScaled = kGroupScales || kTokenScale;
  static constexpr int kRowBytes = kLayout == LatentLayout::kBf16_1152 ? 1152
                                   : kLayout == LatentLayout::kFp8_576 ? 576
                                   : kLayout == LatentLayout::kFp8_644 ? 640
                                                                       : 656;
  static constexpr float kUnit = kScaled ? 16.0f : 1.0f;  // stored latent channels over true ones
  static constexpr float kLargestScale = 65504.0f / 448 / kUnit;
  // Registers of a thread by role; they add up to the 512 that four warpgroups have.
  static constexpr int kProducerRegisters = kHalf ? 64 : 40;
  static constexpr int kScoreRegisters = kHalf ? 128 : 152;
  static constexpr int kOutputRegisters = 160;
  static constexpr int kFullArrivals = kHalf ? 128 : 128 + 4;
  static_assert(kProducerRegisters + kScoreRegisters + 2 * kOutputRegisters == 512);
};

struct Shared {
  uint8_t kv[kStages][kStageBytes];
  uint8_t q[kTiles][kTileBytes];
  uint8_t p[kTileBytes];
  float rescale[kHeads];
  float inverse_sum[kHeads];
  float unscale[kHeads];       // f16 queries: true over stored
  uint8_t valid[kStages][16];  // 4 bits a byte: token 4i + bit of the stage counts
  Mbarrier full[kStages];
  Mbarrier empty[kStages][kQuarters];
  Mbarrier p_full;
  Mbarrier p_empty;
  Mbarrier sum_full;
  Mbarrier sum_empty;
};

// A tile of 64 (row, head) pairs and the tokens that it goes through.
struct Item {
  int64_t row;  // grouped: the first of the group
  int32_t split;
  int32_t head_begin;
  int32_t begin;
  int32_t end;
  const int32_t* slots;
  const uint2* masks;  // grouped: [64 tokens][row]
  __device__ __forceinline__ int blocks() const { return (end - begin + kTokens - 1) / kTokens; }
};

template <bool kGrouped>
__device__ __forceinline__ Item make_item(const SparseMlaCall& call, int64_t index) {
  if constexpr (kGrouped) {
    const SparseMlaGroups& groups = call.groups;
    const int64_t group = __ldg(call.list + index);
    return {.row = group * groups.rows,
            .split = 0,
            .head_begin = 0,
            .begin = 0,
            .end = warp_uniform(__ldg(groups.sizes + group)),
            .slots = groups.slots + group * groups.limit,
            .masks = reinterpret_cast<const uint2*>(groups.masks) +
                     group * (groups.limit / kTokens) * groups.rows};
  } else {
    const SparseMlaItem item = sparse_mla_item(call, index, kHeads);
    return {.row = item.row,
            .split = item.split,
            .head_begin = item.head_begin,
            .begin = item.begin,
            .end = item.end,
            .slots = call.p.slots + item.row * call.p.slots_stride,
            .masks = nullptr};
  }
}

// Which row and head (row * num_heads + head) line `line` of the tile is; false: none.
template <bool kGrouped>
__device__ __forceinline__ bool tile_line(const SparseMlaCall& call,
                                          const Item& item,
                                          int line,
                                          int64_t& index) {
  int64_t row = item.row;
  int head = item.head_begin + line;
  if constexpr (kGrouped) {
    const int heads = kHeads / call.groups.rows;  // a power of two
    row += line / heads;
    head = line % heads;
  }
  index = row * call.p.num_heads + head;
  return head < call.p.num_heads && row < call.p.num_rows;
}

template <bool kGrouped>
__device__ __forceinline__ void copy_tokens(const SparseMlaCall& call, Shared& shared) {
  constexpr int kRowBytes = Traits<LatentLayout::kBf16_1152>::kRowBytes;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int sub = lane / 8, chunk = lane % 8;
  const int token_in_quarter = warp * 4 + sub;
  const auto* cache = static_cast<const uint8_t*>(call.p.cache) + chunk * 16;
  const uint32_t to =
      smem_address(shared.kv) + token_in_quarter * 128 + ((chunk ^ (token_in_quarter & 7)) << 4);
  uint32_t step = 0;
  const int64_t items = sparse_mla_items(call);
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x) {
    const Item item = make_item<kGrouped>(call, i);
    const int blocks = item.blocks();
    int32_t next[kQuarters];
    const auto load_slots = [&](int block) {
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const int at = item.begin + block * kTokens + q * 16 + token_in_quarter;
        next[q] = at < item.end ? __ldg(item.slots + at) : -1;
      }
    };
    if (blocks > 0) load_slots(0);
    for (int block = 0; block < blocks; ++block, ++step) {
      const uint32_t stage = step % kStages, parity = (step / kStages) & 1;
      int32_t now[kQuarters];
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) now[q] = next[q];
      if (block + 1 < blocks) load_slots(block + 1);
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        const bool valid = slot_is_valid(call, now[q]);
        const uint8_t* from = cache + (valid ? slot_offset(call, now[q], kRowBytes) : 0);
        const uint32_t votes = __ballot_sync(0xffffffffu, valid);
        shared.empty[stage][q].wait(parity ^ 1);
        const uint32_t dst = to + stage * kStageBytes + q * 2048;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          cp_async_16(dst + tile * kTileBytes, from + tile * 128, valid ? 16 : 0);
        }
        if (lane == 0) {
          shared.valid[stage][q * 4 + warp] = static_cast<uint8_t>(
              (votes & 1) | (votes >> 7 & 2) | (votes >> 14 & 4) | (votes >> 21 & 8));
        }
      }
      if (lane == 0) shared.full[stage].arrive();
      shared.full[stage].arrive_after_cp_async();
    }
  }
}

__device__ __forceinline__ uint32_t multiply_half2(uint32_t a, uint32_t b) {
  const __half2 product =
      __hmul2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const uint32_t*>(&product);
}
__device__ __forceinline__ uint32_t pack_half(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
// Eight e4m3 to eight f16.
__device__ __forceinline__ uint4 widen(uint2 v) {
  return make_uint4(e4m3x2_to_f16x2(static_cast<uint16_t>(v.x)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(v.x >> 16)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(v.y)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(v.y >> 16)));
}
__device__ __forceinline__ uint32_t bf16x2_to_f16x2(uint32_t v) {
  return pack_half(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
}

// Walks the 16-token quarters of all items of this block. A warp brings its 4 tokens of a quarter
// as they are into the room where their f16 rows go, then widens them in place: token k's latent
// part lies in its rows of tile k, what follows it in those of tile 4 + k. Copies of up to
// kMostPending quarters are under way.
template <LatentLayout kLayout, bool kGrouped>
struct Widener {
  using T = Traits<kLayout>;
  static constexpr uint32_t kMostPending = 4;
  static constexpr int kTail = T::kRowBytes / 16 - 32;  // chunks behind the latent part
  static constexpr int kRopeOffset = T::kGroupScales ? 16 : 0;
  static constexpr int kScaleOffset = T::kGroupScales ? 0 : 128;
  // Rows of 576 bytes end in the middle of a 128-byte line: the rest of it is not wanted.
  static constexpr bool kLineHint = kLayout != LatentLayout::kFp8_576;

  const SparseMlaCall& call;
  Shared& shared;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  int64_t items = 0, index = 0;
  Item item = {};
  int blocks = 0, next = 0;  // of the item
  // Of the block that is copied and of the one behind it; lane 4q + k: token k of the warp's four
  // in quarter q. A block ahead, because slots come from device memory.
  int32_t slot = -1, slot_ahead = -1;
  bool live = false, live_ahead = false;  // there is such a block
  uint32_t copied = 0, widened = 0;

  __device__ __forceinline__ void open() {
    for (; index < items; index += gridDim.x) {
      item = make_item<kGrouped>(call, index);
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
    const int at = item.begin + next * kTokens + lane / 4 % kQuarters * 16 + warp * 4 + lane % 4;
    slot_ahead = at < item.end ? __ldg(item.slots + at) : -1;
    if (++next == blocks) {
      index += gridDim.x;
      open();
    }
  }
  // Where the warp's rows of tile 0 of a quarter are.
  __device__ __forceinline__ uint32_t place(uint32_t quarter) const {
    return smem_address(shared.kv[quarter / kQuarters % kStages]) + quarter % kQuarters * 2048 +
           warp * 512;
  }
  __device__ __forceinline__ bool is_free(uint32_t quarter) {
    Mbarrier& empty = shared.empty[quarter / kQuarters % kStages][quarter % kQuarters];
    return __all_sync(0xffffffffu, empty.test_wait((quarter / (kQuarters * kStages) & 1) ^ 1)) != 0;
  }
  __device__ __forceinline__ void copy() {
    const int32_t here = __shfl_sync(0xffffffffu, slot, copied % kQuarters * 4 + lane % 4);
    const bool valid = slot_is_valid(call, here);
    const uint32_t votes = __ballot_sync(0xffffffffu, valid) & 15;
    const auto* cache = static_cast<const uint8_t*>(call.p.cache);
    const auto unit = static_cast<uint32_t>(valid ? slot_offset(call, here, T::kRowBytes) / 16 : 0);
    const uint32_t to = place(copied);
    const auto bytes = [&](int k) { return (votes >> k & 1) != 0 ? 16u : 0u; };
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint64_t from = uint64_t{__shfl_sync(0xffffffffu, unit, k)} * 16;
      cp_async_16<kLineHint>(to + k * kTileBytes + lane * 16, cache + from + lane * 16, bytes(k));
    }
#pragma unroll
    for (int first = 0; first < 4 * kTail; first += 32) {
      const int k = (first + lane) / kTail, chunk = (first + lane) % kTail;
      const uint64_t from = uint64_t{__shfl_sync(0xffffffffu, unit, k & 3)} * 16;
      if (k < 4) {
        cp_async_16<kLineHint>(to + (4 + k) * kTileBytes + chunk * 16,
                               cache + from + 512 + chunk * 16, bytes(k));
      }
    }
    if constexpr (T::kTokenScale) {
      const uint8_t* page =
          cache + (valid ? static_cast<int64_t>(here / kPageSize) * call.p.page_stride_bytes : 0);
      if (lane < 4) {
        cp_async_4(to + (4 + lane) * kTileBytes + kScaleOffset,
                   page + kPageSize * T::kRowBytes + (valid ? here % kPageSize * 4 : 0),
                   valid ? 4 : 0);
      }
    }
    cp_async_commit();
    if (lane == 0) {
      shared.valid[copied / kQuarters % kStages][copied % kQuarters * 4 + warp] =
          static_cast<uint8_t>(votes);
    }
    ++copied;
    if (copied % kQuarters == 0) next_block();
  }
  __device__ __forceinline__ void wait_for_copy() const {
    switch (copied - widened) {
      case 1:
        return cp_async_wait<0>();
      case 2:
        return cp_async_wait<1>();
      case 3:
        return cp_async_wait<2>();
      default:
        return cp_async_wait<kMostPending - 1>();
    }
  }
  __device__ __forceinline__ void widen_quarter() {
    wait_for_copy();
    __syncwarp();
    const uint32_t at = place(widened);
    uint2 latent[4][2];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      latent[k][0] = load_shared_8(at + k * kTileBytes + lane * 8);
      latent[k][1] = load_shared_8(at + k * kTileBytes + 256 + lane * 8);
    }
    const int sub = lane / 8;
    const uint32_t rope_at = at + (4 + sub) * kTileBytes + kRopeOffset;
    uint4 rope;
    uint32_t factor = 0;
    if constexpr (kLayout == LatentLayout::kFp8_576) {
      rope = widen(load_shared_8(rope_at + lane % 8 * 8));
    } else {
      rope = load_shared_16(rope_at + lane % 8 * 16);
      // Lane k * 4 + g: token k, group g; with one scale a token, lane k.
      const uint32_t scale_at = T::kGroupScales
                                    ? at + (4 + lane / 4 % 4) * kTileBytes + lane % 4 * 4
                                    : at + (4 + lane % 4) * kTileBytes + kScaleOffset;
      const float scale = fminf(load_shared_f32(scale_at), T::kLargestScale) * T::kUnit;
      factor = pack_half(scale, scale);
      rope = make_uint4(bf16x2_to_f16x2(rope.x), bf16x2_to_f16x2(rope.y), bf16x2_to_f16x2(rope.z),
                        bf16x2_to_f16x2(rope.w));
    }
    __syncwarp();  // all is read
    // The tiles' rows are 1024-byte aligned in eights: the swizzle is an exclusive or.
    const uint32_t to = (at + sub * kTileBytes) | ((lane % 8 ^ (warp & 1) * 4) << 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint4 v = widen(latent[k][half]);
        if constexpr (T::kScaled) {
          const int source = T::kTokenScale ? k : k * 4 + half * 2 + lane / 16;
          const uint32_t f = __shfl_sync(0xffffffffu, factor, source);
          v.x = multiply_half2(v.x, f), v.y = multiply_half2(v.y, f);
          v.z = multiply_half2(v.z, f), v.w = multiply_half2(v.w, f);
        }
        store_shared_16((to ^ (k << 4)) + k * 128 + half * 4 * kTileBytes, v);
      }
    }
    store_shared_16(at + 8 * kTileBytes + sub * 128 + ((lane % 8 ^ ((warp & 1) * 4 + sub)) << 4),
                    rope);
    if (widened % kQuarters == kQuarters - 1) {
      fence_proxy_async();
      shared.full[widened / kQuarters % kStages].arrive();
    }
    ++widened;
  }
  __device__ __forceinline__ void run() {
    items = sparse_mla_items(call);
    index = blockIdx.x;
    open();
    next_block();
    next_block();
    while (live || widened != copied) {
      if (live && copied - widened < kMostPending && is_free(copied)) {
        copy();
      } else if (widened != copied) {
        widen_quarter();
      }
    }
  }
};

template <LatentLayout kLayout, bool kGrouped>
__device__ __forceinline__ void produce(const SparseMlaCall& call, Shared& shared) {
  if constexpr (Traits<kLayout>::kHalf) {
    Widener<kLayout, kGrouped> widener{.call = call, .shared = shared};
    widener.run();
  } else {
    copy_tokens<kGrouped>(call, shared);
  }
}

// The item's queries to shared memory; lines of the tile that stand for no head are zero.
template <bool kGrouped>
__device__ __forceinline__ void copy_queries(const SparseMlaCall& call,
                                             const Item& item,
                                             Shared& shared) {
  const int thread = threadIdx.x % 128;
  const auto* latent = static_cast<const uint8_t*>(call.p.q_latent);
  const auto* rope = static_cast<const uint8_t*>(call.p.q_rope);
  const uint32_t to = smem_address(shared.q);
  const int chunk = thread % 8;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int line = part * 16 + thread / 8;
    int64_t index;
    const bool in = tile_line<kGrouped>(call, item, line, index);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint8_t* from = tile < 8 ? latent + index * 1024 + tile * 128 : rope + index * 128;
      cp_async_16(to + tile * kTileBytes + line * 128 + ((chunk ^ (line & 7)) << 4),
                  in ? from + chunk * 16 : latent, in ? 16 : 0);
    }
  }
  cp_async_commit();
  cp_async_wait<0>();
}

// The same as f16, each line scaled by a power of two of its own; roped channels are kUnit larger
// beside the latent ones, which the cache stores times kUnit.
template <LatentLayout kLayout, bool kGrouped>
__device__ __forceinline__ void scale_queries(const SparseMlaCall& call,
                                              const Item& item,
                                              Shared& shared) {
  constexpr int kAtOnce = 4;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const auto widen_bf16 = [](uint4 from, float(&to)[8]) {
    const uint32_t words[4] = {from.x, from.y, from.z, from.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      to[k * 2] = __uint_as_float(words[k] << 16);
      to[k * 2 + 1] = __uint_as_float(words[k] & 0xffff0000u);
    }
  };
#pragma unroll 1
  for (int first = 0; first < 16; first += kAtOnce) {
    uint4 raw[kAtOnce][3];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      int64_t index;
      const bool in = tile_line<kGrouped>(call, item, warp * 16 + first + k, index);
      const auto* latent = reinterpret_cast<const uint4*>(
          static_cast<const __nv_bfloat16*>(call.p.q_latent) + index * kLatentDim);
      const auto* rope = reinterpret_cast<const uint4*>(
          static_cast<const __nv_bfloat16*>(call.p.q_rope) + index * kRopeDim);
      raw[k][0] = raw[k][1] = raw[k][2] = make_uint4(0, 0, 0, 0);
      if (in) {
        raw[k][0] = __ldg(latent + lane);
        raw[k][1] = __ldg(latent + 32 + lane);
        if (lane < 8) raw[k][2] = __ldg(rope + lane);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int line = warp * 16 + first + k;
      float high = 0;
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        float v[8];
        widen_bf16(raw[k][part], v);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          high = fmaxf(high, fabsf(part == 2 ? v[c] * Traits<kLayout>::kUnit : v[c]));
        }
      }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, d));
      const int exponent = static_cast<int>(__float_as_uint(high) >> 23) - 127;
      int shift = high > 0 && exponent < 128 ? kQueryExponent - exponent : 0;
      shift = min(max(shift, -120), 120);
      const float up = __uint_as_float(static_cast<uint32_t>(shift + 127) << 23);
      if (lane == 0) {
        shared.unscale[line] = __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
      }
      const uint32_t to = smem_address(shared.q) + line * 128 + ((lane % 8 ^ (line & 7)) << 4);
#pragma unroll
      for (int part = 0; part < 3; ++part) {
        if (part == 2 && lane >= 8) continue;
        float v[8];
        widen_bf16(raw[k][part], v);
        const float factor = part == 2 ? up * Traits<kLayout>::kUnit : up;
        uint4 out;
        out.x = pack_half(v[0] * factor, v[1] * factor);
        out.y = pack_half(v[2] * factor, v[3] * factor);
        out.z = pack_half(v[4] * factor, v[5] * factor);
        out.w = pack_half(v[6] * factor, v[7] * factor);
        store_shared_16(to + (part * 4 + lane / 8) * kTileBytes, out);
      }
    }
  }
}

// By the score warpgroup.
template <LatentLayout kLayout, bool kGrouped>
__device__ __forceinline__ void load_queries(const SparseMlaCall& call,
                                             const Item& item,
                                             Shared& shared) {
  named_barrier_sync(1, 128);  // all warps are done with the item before
  if constexpr (Traits<kLayout>::kHalf) {
    scale_queries<kLayout, kGrouped>(call, item, shared);
  } else {
    copy_queries<kGrouped>(call, item, shared);
  }
  fence_proxy_async();
  named_barrier_sync(1, 128);
}

}  // namespace winnow::kernels::sm90::wide
