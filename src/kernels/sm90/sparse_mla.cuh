// What the sparse MLA kernels share: the device view of a call, its work items, slot arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/attention.h"

namespace winnow::kernels::sm90 {

inline constexpr int kLatentDim = 512;
inline constexpr int kRopeDim = 64;
inline constexpr int kPageSize = 64;
// A group's rows name at most this many slots together, in pools of at most so many pages.
inline constexpr int kMostGroupEntries = 16384;
inline constexpr int kMostGroupPages = 65536;
inline constexpr float kLog2e = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;
// The running maximum moves only when a logit (in base 2) passes it by this much: weights stay
// below 2^kMaxSlack, and the accumulators are seldom rescaled.
inline constexpr float kMaxSlack = 8.0f;

// Rows that share a gather: group g stands for rows [g * rows, (g + 1) * rows). All on the device.
struct SparseMlaGroups {
  int32_t rows;         // of a group
  int32_t limit;        // slots that a group has room for, a multiple of 64
  int32_t* counts;      // [2]: groups in group_list, rows in row_list
  int32_t* group_list;  // groups that share
  int32_t* row_list;    // rows of the groups that do not
  int32_t* sizes;       // [num_groups] slots of a group
  int32_t* slots;       // [num_groups, limit]; -1 where windows are padded
  uint32_t* masks;      // [num_groups, limit / 64, rows, 2]: bit j: the row chose slot j of the 64
};

struct SparseMlaCall {
  SparseMlaParams p;
  int32_t num_splits;
  int32_t tokens_per_split;
  int32_t head_tiles;
  int32_t num_slots;
  int64_t num_items;   // num_rows * num_splits * head_tiles, the head tile running fastest
  float* partial_out;  // [num_rows, num_splits, num_heads, 512], normalised
  float* partial_lse;  // [num_rows, num_splits, num_heads], base 2
  // The rows (or, for grouped launches, the groups) that take part, and how many; null: all.
  const int32_t* list;
  const int32_t* list_count;
  SparseMlaGroups groups;
};

// One piece of one row for one tile of heads: entries [begin, end) of the row's slots.
struct SparseMlaItem {
  int64_t row;
  int32_t split;
  int32_t head_begin;
  int32_t begin;
  int32_t end;
};

// The same value in all lanes, in a form that the compiler knows to be so: loops and descriptors
// that hang on it then run on the uniform data path.
__device__ __forceinline__ int32_t warp_uniform(int32_t value) {
  return static_cast<int32_t>(__reduce_max_sync(0xffffffffu, value));
}

__device__ __forceinline__ int64_t sparse_mla_items(const SparseMlaCall& call) {
  if (call.list == nullptr) return call.num_items;
  return static_cast<int64_t>(__ldg(call.list_count)) * call.num_splits * call.head_tiles;
}

// The item but for where its entries end: begin as if the row were long enough, end as if it were
// full. What hangs on no more than this need not wait for the row's length.
__device__ __forceinline__ SparseMlaItem sparse_mla_place(const SparseMlaCall& call,
                                                          int64_t index,
                                                          int head_tile) {
  SparseMlaItem item;
  const int64_t piece = index / call.head_tiles;
  item.head_begin = static_cast<int32_t>(index - piece * call.head_tiles) * head_tile;
  const int64_t place = piece / call.num_splits;
  item.row = call.list == nullptr ? place : __ldg(call.list + place);
  item.split = static_cast<int32_t>(piece - place * call.num_splits);
  item.begin = item.split * call.tokens_per_split;
  item.end = min(item.begin + call.tokens_per_split, static_cast<int32_t>(call.p.slots_stride));
  return item;
}
__device__ __forceinline__ void bound_by_length(const SparseMlaCall& call, SparseMlaItem& item) {
  const int32_t len =
      min(max(__ldg(call.p.lens + item.row), 0), static_cast<int32_t>(call.p.slots_stride));
  item.begin = warp_uniform(min(item.begin, len));
  item.end = warp_uniform(min(item.begin + call.tokens_per_split, len));
}
__device__ __forceinline__ SparseMlaItem sparse_mla_item(const SparseMlaCall& call,
                                                         int64_t index,
                                                         int head_tile) {
  SparseMlaItem item = sparse_mla_place(call, index, head_tile);
  bound_by_length(call, item);
  return item;
}

__device__ __forceinline__ bool slot_is_valid(const SparseMlaCall& call, int32_t slot) {
  return static_cast<uint32_t>(slot) < static_cast<uint32_t>(call.num_slots);
}
__device__ __forceinline__ int64_t slot_offset(const SparseMlaCall& call,
                                               int32_t slot,
                                               int32_t row_bytes) {
  return static_cast<int64_t>(slot / kPageSize) * call.p.page_stride_bytes +
         static_cast<int64_t>(slot % kPageSize) * row_bytes;
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_fast(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// bf16 caches. grouped: the items are call.list's groups.
cudaError_t launch_sparse_mla_wide(const SparseMlaCall& call,
                                   bool grouped,
                                   int grid,
                                   cudaStream_t stream);
// lines: 16, 32 or 64 heads a tile (64 where rows share a gather).
struct F16Tile {
  int lines;
  bool grouped;
  bool fp8_query;  // kFp8_576, 64 lines
};
cudaError_t launch_sparse_mla_f16(const SparseMlaCall& call,
                                  layout::LatentLayout layout,
                                  const F16Tile& tile,
                                  int grid,
                                  cudaStream_t stream);
template <layout::LatentLayout kLayout>
cudaError_t launch_sparse_mla_f16_layout(const SparseMlaCall& call,
                                         const F16Tile& tile,
                                         int grid,
                                         cudaStream_t stream);
cudaError_t launch_sparse_mla_fp8(const SparseMlaCall& call,
                                  const SparseMlaPlan& plan,
                                  cudaStream_t stream);
cudaError_t launch_sparse_mla_groups(const SparseMlaCall& call,
                                     const SparseMlaPlan& plan,
                                     cudaStream_t stream);
cudaError_t launch_sparse_mla_combine(const SparseMlaCall& call, cudaStream_t stream);

}  // namespace winnow::kernels::sm90
