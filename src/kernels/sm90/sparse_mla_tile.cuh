// A tile of lines, each a head of a row: the heads of one row, or those of several rows that share
// a gather. What the tile kernels of sparse MLA have in common.
#pragma once

#include "kernels/device/async_copy.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {

inline constexpr int kTileTokens = 64;      // that a tile goes through at a time
inline constexpr int kSwizzleBytes = 1024;  // alignment of the pattern

// A block's plan of its dynamic shared memory, which has kSwizzleBytes more than it needs.
template <class T>
__device__ __forceinline__ T& swizzle_aligned(uint8_t* raw) {
  const auto past = static_cast<uint32_t>(__cvta_generic_to_shared(raw)) % kSwizzleBytes;
  return *reinterpret_cast<T*>(raw + (kSwizzleBytes - past) % kSwizzleBytes);
}

struct TileItem {
  int64_t row;  // grouped: the first of the group
  int32_t split;
  int32_t head_begin;
  int32_t begin;
  int32_t end;
  const int32_t* slots;
  const uint2* masks;  // grouped: [64 tokens][row]
  __device__ __forceinline__ int blocks() const {
    return (end - begin + kTileTokens - 1) / kTileTokens;
  }
};

template <bool kGrouped, int kLines>
__device__ __forceinline__ TileItem tile_item(const SparseMlaCall& call, int64_t index) {
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
                     group * (groups.limit / kTileTokens) * groups.rows};
  } else {
    const SparseMlaItem item = sparse_mla_item(call, index, kLines);
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
template <bool kGrouped, int kLines>
__device__ __forceinline__ bool tile_line(const SparseMlaCall& call,
                                          const TileItem& item,
                                          int line,
                                          int64_t& index) {
  int64_t row = item.row;
  int head = item.head_begin + line;
  if constexpr (kGrouped) {
    const int heads = kLines / call.groups.rows;  // a power of two
    row += line / heads;
    head = line % heads;
  }
  index = row * call.p.num_heads + head;
  return head < call.p.num_heads && row < call.p.num_rows;
}

// Brings an item's queries to the L2: whoever loads them does nothing else meanwhile.
template <bool kGrouped, int kLines>
__device__ __forceinline__ void prefetch_queries(const SparseMlaCall& call, int64_t index) {
  const int heads = call.p.num_heads;
  int64_t row, lines = heads;
  int head = 0;
  if constexpr (kGrouped) {
    row = int64_t{__ldg(call.list + index)} * call.groups.rows;
    lines *= min(int64_t{call.groups.rows}, call.p.num_rows - row);
  } else {
    const int64_t piece = index / call.head_tiles, place = piece / call.num_splits;
    row = call.list == nullptr ? place : __ldg(call.list + place);
    head = static_cast<int>(index - piece * call.head_tiles) * kLines;
    lines = min(heads - head, kLines);
  }
  const int64_t first = row * heads + head;
  prefetch_bulk(static_cast<const __nv_bfloat16*>(call.p.q_latent) + first * kLatentDim,
                static_cast<uint32_t>(lines) * kLatentDim * 2);
  prefetch_bulk(static_cast<const __nv_bfloat16*>(call.p.q_rope) + first * kRopeDim,
                static_cast<uint32_t>(lines) * kRopeDim * 2);
}

// Of a line's partial result, where rows are split.
__device__ __forceinline__ int64_t partial_index(const SparseMlaCall& call,
                                                 const TileItem& item,
                                                 int line) {
  return (item.row * call.num_splits + item.split) * call.p.num_heads + item.head_begin + line;
}

}  // namespace winnow::kernels::sm90
