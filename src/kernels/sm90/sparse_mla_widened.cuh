// How e4m3 tokens and queries come into the shared memory of the widened sparse MLA kernel
// (sparse_mla_widened.cu has the design and includes this file alone). e4m3 is exact in f16. Of
// layouts with scales, value * kUnit is stored, with 11 bits; 16 keeps scales down to the smallest
// (1e-4 / 448) out of f16's subnormal range by and large.
#pragma once

#include <cuda_fp16.h>

#include "kernels/device/cluster.cuh"
#include "kernels/device/fp8.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/mma_sync.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90::widened {

using layout::LatentLayout;

constexpr int kHeads = 64;   // of a block
constexpr int kTokens = 64;  // of a stage
constexpr int kStages = 2;
constexpr int kTiles = 9;  // of 64 channels: 8 latent, 1 roped
constexpr int kTileBytes = 64 * 128;
constexpr int kStageBytes = kTiles * kTileBytes;
constexpr int kThreads = 384;
constexpr int kProducerWarps = 4;
constexpr int kQuarters = 4;  // of a stage: 16 tokens, 4 a producer warp
constexpr int kBatch = 4;     // tokens of a warp that are loaded together
// Queries are scaled by a power of two to [2^14, 2^15).
constexpr int kQueryExponent = 14;

template <LatentLayout kLayout>
struct Traits {
  static constexpr bool kGroupScales = kLayout == LatentLayout::kFp8_656;
  static constexpr bool kTokenScale = kLayout == LatentLayout::kFp8_644;
  static constexpr bool kScaled = kGroupScales || kTokenScale;
  static constexpr int kRowBytes = kLayout == LatentLayout::kFp8_576   ? 576
                                   : kLayout == LatentLayout::kFp8_644 ? 640
                                                                       : 656;
  static constexpr int kRopeOffset = kGroupScales ? 528 : 512;
  static constexpr float kUnit = kScaled ? 16.0f : 1.0f;  // stored latent channels over true ones
  static constexpr float kLargestScale = 65504.0f / 448 / kUnit;
};

struct Shared {
  uint8_t kv[kStages][kStageBytes];
  uint8_t q[kTiles][kTileBytes];
  uint8_t p[kTileBytes];
  float rescale[kHeads];
  float inverse_sum[kHeads];
  float unscale[kHeads];                     // queries: true over stored
  uint8_t valid[kStages][kTokens / kBatch];  // bit k of byte i: token 4i + k of the stage counts
  Mbarrier full[kStages];
  Mbarrier empty[kStages];
  Mbarrier p_full;
  Mbarrier p_empty;
  Mbarrier queries;  // warpgroups 0 and 1 have written the item's queries
  Mbarrier sums;     // and are through with its tokens
};

__device__ __forceinline__ uint4 load_row_16(const void* from, bool valid) {
  uint4 v;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %5, 0;\n"
      "mov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
      "}\n"
      : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
      : "l"(from), "r"(static_cast<uint32_t>(valid)));
  return v;
}
__device__ __forceinline__ uint2 load_row_8(const void* from, bool valid) {
  uint2 v;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %3, 0;\n"
      "mov.b32 %0, 0;\nmov.b32 %1, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];\n"
      "}\n"
      : "=&r"(v.x), "=&r"(v.y)
      : "l"(from), "r"(static_cast<uint32_t>(valid)));
  return v;
}
__device__ __forceinline__ float load_scale(const void* from, bool valid) {
  float v;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "mov.b32 %0, 0;\n"
      "@p ld.global.nc.f32 %0, [%1];\n"
      "}\n"
      : "=&f"(v)
      : "l"(from), "r"(static_cast<uint32_t>(valid)));
  return v;
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
__device__ __forceinline__ uint4 widen(uint32_t low, uint32_t high) {
  return make_uint4(e4m3x2_to_f16x2(static_cast<uint16_t>(low)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(low >> 16)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(high)),
                    e4m3x2_to_f16x2(static_cast<uint16_t>(high >> 16)));
}
__device__ __forceinline__ uint32_t bf16x2_to_f16x2(uint32_t v) {
  return pack_half(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
}

// Four tokens of a warp on their way: lane l holds channels 16 l .. of each, chunk l % 8 of the
// roped part of token l / 8, and the scale of token l / 4 % 4, group l % 4 (or of token l % 4).
template <LatentLayout kLayout>
struct Batch {
  using T = Traits<kLayout>;
  uint4 latent[kBatch];
  uint4 rope;  // e4m3: the first half
  float scale;

  // slot: of token l % 4.
  __device__ __forceinline__ void load(const SparseMlaCall& call, int32_t slot) {
    const int lane = threadIdx.x % 32;
    const auto* cache = static_cast<const uint8_t*>(call.p.cache);
    const bool valid = slot_is_valid(call, slot);
    const uint32_t votes = __ballot_sync(0xffffffffu, valid);
    const auto unit = static_cast<uint32_t>(valid ? slot_offset(call, slot, T::kRowBytes) / 16 : 0);
    const auto row = [&](int token) {
      return cache + uint64_t{__shfl_sync(0xffffffffu, unit, token)} * 16;
    };
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      latent[k] = load_row_16(row(k) + lane * 16, (votes >> k & 1) != 0);
    }
    const uint8_t* rope_row = row(lane / 8) + T::kRopeOffset;
    const bool rope_valid = (votes >> (lane / 8) & 1) != 0;
    if constexpr (kLayout == LatentLayout::kFp8_576) {
      const uint2 half = load_row_8(rope_row + lane % 8 * 8, rope_valid);
      rope = make_uint4(half.x, half.y, 0, 0);
    } else {
      rope = load_row_16(rope_row + lane % 8 * 16, rope_valid);
    }
    if constexpr (T::kGroupScales) {
      scale =
          load_scale(row(lane / 4 % 4) + 512 + lane % 4 * 4, (votes >> (lane / 4 % 4) & 1) != 0);
    } else if constexpr (T::kTokenScale) {
      const int64_t page = valid ? slot / kPageSize : 0, in_page = valid ? slot % kPageSize : 0;
      scale = load_scale(
          cache + page * call.p.page_stride_bytes + kPageSize * T::kRowBytes + in_page * 4, valid);
    }
  }

  // Widens the tokens to lines line .. line + 3 of the stage at `kv` (a multiple of 4). peer: the
  // same stage of the cluster's other block, told by its barrier; 0: none.
  __device__ __forceinline__ void store(uint32_t kv, int line, uint32_t peer, uint32_t barrier) {
    const int lane = threadIdx.x % 32;
    uint32_t factor = 0;
    if constexpr (T::kScaled) {
      const float bounded = fminf(scale, T::kLargestScale) * T::kUnit;
      factor = pack_half(bounded, bounded);
    }
    const auto put = [&](uint32_t offset, uint4 v) {
      store_shared_16(kv + offset, v);
      if (peer != 0) store_cluster_16(peer + offset, v, barrier);
    };
    // Eight lanes write lines of two tiles: one with its even chunks, one with its odd ones, so
    // that they meet no bank twice.
    const uint32_t odd = lane / 4 % 2;
    const uint32_t chunk = lane % 4 * 2 + odd;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const uint32_t offset = lane / 4 * kTileBytes + (line + k) * 128;
      const uint32_t swizzle = (line + k) & 7;
      uint32_t f = 0;
      if constexpr (T::kScaled) {
        f = __shfl_sync(0xffffffffu, factor, T::kTokenScale ? k : k * 4 + lane / 8);
      }
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const bool upper = (odd ^ half) != 0;
        uint4 v = widen(upper ? latent[k].z : latent[k].x, upper ? latent[k].w : latent[k].y);
        if constexpr (T::kScaled) {
          v.x = multiply_half2(v.x, f), v.y = multiply_half2(v.y, f);
          v.z = multiply_half2(v.z, f), v.w = multiply_half2(v.w, f);
        }
        put(offset + ((chunk ^ half ^ swizzle) << 4), v);
      }
    }
    const int rope_line = line + lane / 8;
    uint4 v;
    if constexpr (kLayout == LatentLayout::kFp8_576) {
      v = widen(rope.x, rope.y);
    } else {
      v = make_uint4(bf16x2_to_f16x2(rope.x), bf16x2_to_f16x2(rope.y), bf16x2_to_f16x2(rope.z),
                     bf16x2_to_f16x2(rope.w));
    }
    put(8 * kTileBytes + rope_line * 128 + ((lane % 8 ^ (rope_line & 7)) << 4), v);
  }
};

// The stages that the producers fill, in order, over all items of a block (or cluster).
struct Walk {
  const SparseMlaCall& call;
  const int64_t items;
  int64_t index;
  const int32_t* slots = nullptr;
  int32_t at = 0, end = 0;  // first token of the next stage, end of the item
  int32_t ahead = -1;       // its slot

  __device__ __forceinline__ explicit Walk(const SparseMlaCall& call_in)
      : call(call_in), items(sparse_mla_items(call_in)), index(blockIdx.x) {
    open();
  }
  // Of token l % 4 of this warp's in quarter l / 4 of the stage.
  __device__ __forceinline__ int32_t token() const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % kProducerWarps;
    return at + lane / 4 % kQuarters * 16 + warp * kBatch + lane % 4;
  }
  __device__ __forceinline__ void open() {
    for (; index < items; index += gridDim.x) {
      SparseMlaItem item = sparse_mla_place(call, index, kHeads);
      slots = call.p.slots + item.row * call.p.slots_stride;
      at = item.begin;
      ahead = token() < item.end ? __ldg(slots + token()) : -1;
      bound_by_length(call, item);
      end = item.end;
      if (at < end) return;
    }
  }
  // False: no more stages. slot: of this lane's token, -1 behind the end.
  __device__ __forceinline__ bool take(int32_t& slot) {
    slot = -1;
    if (index >= items) return false;
    if (token() < end) slot = ahead;
    at += kTokens;
    if (at < end) {
      ahead = token() < end ? __ldg(slots + token()) : -1;
    } else {
      index += gridDim.x;
      open();
    }
    return true;
  }
};

// Brings tokens, always four batches of a warp under way: a stage of 64 tokens, or where two blocks
// share stages, this block's halves of two stages.
template <LatentLayout kLayout, int kBlocks>
struct Producer {
  static constexpr int kParts = kQuarters / kBlocks;  // batches of a warp that make a stage
  static constexpr int kAhead = kBlocks;              // stages under way

  const SparseMlaCall& call;
  Shared& shared;
  Walk walk;
  const uint32_t kv, first_quarter, peer, peer_full;
  Batch<kLayout> batch[kQuarters];
  bool live[kAhead], live_next[kAhead];
  uint32_t votes[kAhead];  // of the stage's tokens that this warp brings, all quarters
  int32_t slot_next[kAhead];
  uint32_t step = 0;

  __device__ __forceinline__ Producer(const SparseMlaCall& call_in, Shared& shared_in)
      : call(call_in),
        shared(shared_in),
        walk(call_in),
        kv(smem_address(shared_in.kv)),
        first_quarter(kBlocks == 1 ? 0 : cluster_rank() * kParts),
        peer(kBlocks == 1 ? 0 : cluster_address(kv, cluster_rank() ^ 1)),
        peer_full(
            kBlocks == 1 ? 0 : cluster_address(smem_address(shared_in.full), cluster_rank() ^ 1)) {}

  __device__ __forceinline__ void load(int a, int part) {
    const int lane = threadIdx.x % 32;
    batch[a * kParts + part].load(
        call, __shfl_sync(0xffffffffu, slot_next[a], (first_quarter + part) * 4 + lane % 4));
  }
  // What is under way for place a becomes what was next.
  __device__ __forceinline__ void advance(int a) {
    live[a] = live_next[a];
    votes[a] = __ballot_sync(0xffffffffu, slot_is_valid(call, slot_next[a]));
    live_next[a] = walk.take(slot_next[a]);
  }
  __device__ __forceinline__ void fill(int a) {
    const uint32_t stage = step % kStages, warp = threadIdx.x / 32 % kProducerWarps;
    const int lane = threadIdx.x % 32;
    cluster_wait(smem_address(&shared.empty[stage]), (step / kStages & 1) ^ 1);
    if (lane == 0) {  // who says that the stage is full
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        shared.valid[stage][q * kProducerWarps + warp] =
            static_cast<uint8_t>(votes[a] >> (q * 4) & 15);
      }
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const auto line = static_cast<int>((first_quarter + part) * 16 + warp * kBatch);
      batch[a * kParts + part].store(
          kv + stage * kStageBytes, line, kBlocks == 1 ? 0 : peer + stage * kStageBytes,
          kBlocks == 1 ? 0 : peer_full + stage * static_cast<uint32_t>(sizeof(Mbarrier)));
      if (live_next[a]) load(a, part);
    }
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      if (kBlocks == 2 && warp == 0) {
        shared.full[stage].arrive_expect_bytes(kStageBytes / 2);
      } else {
        shared.full[stage].arrive();
      }
    }
    ++step;
  }
  __device__ __forceinline__ void run() {
#pragma unroll
    for (int a = 0; a < kAhead; ++a) live_next[a] = walk.take(slot_next[a]);
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        if (live_next[a]) load(a, part);
      }
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) advance(a);
    while (true) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        if (!live[a]) return;
        fill(a);
        advance(a);
      }
    }
  }
};

}  // namespace winnow::kernels::sm90::widened
