// What the index-logits kernels share: the share of pages a block works on, page copies, and the
// sum over heads of one tile of products (64 keys x columns of (query row, head)).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/device/async_copy.cuh"
#include "kernels/device/mbarrier.cuh"
#include "kernels/device/tensor_copy.cuh"
#include "kernels/device/wgmma.cuh"
#include "kernels/indexer.h"
#include "kernels/sm90/launch.cuh"

namespace winnow::kernels::sm90 {

inline constexpr int kPage = 64;        // keys a page, rows of a product tile
inline constexpr int kHeadBytes = 128;  // e4m3 values of one head or key
inline constexpr int kKeyBytes = kPage * kHeadBytes;
inline constexpr int kScaleBytes = kPage * 4;
inline constexpr int kPageCopyBytes = kKeyBytes + kScaleBytes;

// Device-side view of IndexLogitsParams.
struct LogitsArgs {
  RowsView rows;
  const float* head_weights;
  int32_t index_n_heads;
  const uint8_t* keys;
  int64_t page_stride_bytes;
  int32_t key_begin, key_end;
  int32_t skip_tokens;
  float* logits;
  int64_t logits_stride;
};

// Pages that a row needs, counted from the page of key_begin.
__device__ inline int32_t pages_of_row(const LogitsArgs& a, int64_t row) {
  const int32_t tokens = a.rows.positions[row] + 1;
  if (tokens <= a.skip_tokens) return 0;
  return max(0, (min(tokens, a.key_end) + kPage - 1) / kPage - a.key_begin / kPage);
}

// A run of pages of one group of rows.
struct Segment {
  int32_t group = 0, page = 0, count = 0;
};

// The pages of all groups in one line, cut into equal shares, one a block. prefix[g]: pages before
// group g.
struct Share {
  const int32_t* prefix;
  int32_t unit, end, group;

  __device__ Share(const int32_t* prefix_in, int32_t num_groups, int32_t block, int32_t num_blocks)
      : prefix(prefix_in), group(0) {
    const int64_t total = prefix[num_groups];
    unit = static_cast<int32_t>(total * block / num_blocks);
    end = static_cast<int32_t>(total * (block + 1) / num_blocks);
    int32_t last = num_groups;  // the group of `unit` is in [group, last)
    while (last - group > 1) {
      const int32_t middle = (group + last) / 2;
      (prefix[middle] <= unit ? group : last) = middle;
    }
  }
  __device__ bool next(Segment& segment) {
    if (unit >= end) return false;
    while (prefix[group + 1] <= unit) ++group;
    segment = {group, unit - prefix[group], min(end, prefix[group + 1]) - unit};
    unit += segment.count;
    return true;
  }
};

// Copies the pages of a segment into the stages of the ring; a whole warp calls it. kOnce: no other
// block reads these pages.
template <int kStages, bool kOnce>
__device__ inline void copy_pages(const LogitsArgs& a,
                                  const CUtensorMap* key_map,
                                  const int32_t* pages,
                                  int32_t count,
                                  uint8_t* key_tiles,
                                  float* scales,
                                  Mbarrier* full,
                                  Mbarrier* empty,
                                  uint32_t& turn) {
  const int lane = threadIdx.x % 32;
  int32_t ids = lane < count ? pages[lane] : 0;
  for (int32_t first = 0; first < count; first += 32) {
    const int32_t here = min(32, count - first);
    const int32_t next = first + 32 + lane < count ? pages[first + 32 + lane] : 0;
    for (int32_t i = 0; i < here; ++i, ++turn) {
      const int32_t page = __shfl_sync(~0u, ids, i);
      const uint32_t stage = turn % kStages;
      if (lane == 0) {
        empty[stage].wait((turn / kStages & 1) ^ 1);
        full[stage].arrive_expect_bytes(kPageCopyBytes);
        const uint32_t barrier = smem_address(&full[stage].word);
        const uint32_t tile = smem_address(key_tiles + stage * kKeyBytes);
        if constexpr (kOnce) {
          tensor_copy_3d_once(tile, key_map, 0, 0, page, barrier);
        } else {
          tensor_copy_3d(tile, key_map, 0, 0, page, barrier);
        }
        bulk_copy(smem_address(scales + stage * kPage),
                  a.keys + page * a.page_stride_bytes + kKeyBytes, kScaleBytes, barrier);
      }
      __syncwarp();
    }
    ids = next;
  }
}

// One thread's part of a product tile of kColumns = query rows x kHeads columns: it holds
// accumulators of two keys and a quarter of each row's heads, and in the end the logit of one
// query row for kResults keys.
template <int kHeads, int kColumns>
struct HeadSum {
  static constexpr int kRows = kColumns / kHeads;
  static constexpr int kResults = kRows == 4 ? 2 : 1;
  static_assert(kRows == 1 || kRows == 2 || kRows == 4);

  __device__ static int row() { return threadIdx.x % kRows; }
  // Key inside the page; the second result is 8 keys further.
  __device__ static int key() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int second = kRows == 4 ? 0 : lane / kRows % 2;
    return warp * 16 + lane / 4 + 8 * second;
  }
  // Lanes that hold a copy of another lane's result must not store it.
  __device__ static bool stores() { return kRows != 1 || threadIdx.x % 4 < 2; }

  // weights[2 j + e]: head weight of column 8 j + 2 (lane % 4) + e.
  __device__ static void load_weights(const LogitsArgs& a,
                                      int64_t first_row,
                                      int64_t end_row,
                                      float (&weights)[kColumns / 4]) {
    const int pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const int column = 8 * j + pair;
      const int64_t row = first_row + column / kHeads;
      const int head = column % kHeads;
      float2 w = make_float2(0, 0);
      if (row < end_row && head < a.index_n_heads) {
        w = *reinterpret_cast<const float2*>(a.head_weights + row * a.index_n_heads + head);
      }
      weights[2 * j] = w.x;
      weights[2 * j + 1] = w.y;
    }
  }

  // The order of additions is the same for every kColumns: a row's bits do not depend on its
  // neighbours.
  __device__ static void sum(const float (&d)[kColumns / 2],
                             const float (&weights)[kColumns / 4],
                             float (&results)[kResults]) {
    float v[kRows][2];
#pragma unroll
    for (int q = 0; q < kRows; ++q) {
      // Two chains of additions a result hide the latency where a thread has few results.
      float even[2] = {0, 0}, odd[2] = {0, 0};
#pragma unroll
      for (int i = 0; i < kHeads / 8; ++i) {
        const int j = q * (kHeads / 8) + i;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          even[r] = fmaf(fmaxf(d[4 * j + 2 * r], 0.0f), weights[2 * j], even[r]);
          float& second = kHeads == 32 ? even[r] : odd[r];
          second = fmaf(fmaxf(d[4 * j + 2 * r + 1], 0.0f), weights[2 * j + 1], second);
        }
      }
      v[q][0] = kHeads == 32 ? even[0] : even[0] + odd[0];
      v[q][1] = kHeads == 32 ? even[1] : even[1] + odd[1];
    }
    const bool bit0 = threadIdx.x & 1, bit1 = threadIdx.x & 2;
    const auto exchange = [](bool upper, float low, float high, int mask) {
      return (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, mask);
    };
    if constexpr (kRows == 4) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float a = exchange(bit0, v[0][r], v[1][r], 1);
        const float b = exchange(bit0, v[2][r], v[3][r], 1);
        results[r] = exchange(bit1, a, b, 2);
      }
    } else if constexpr (kRows == 2) {
      const float a = exchange(bit0, v[0][0], v[1][0], 1);
      const float b = exchange(bit0, v[0][1], v[1][1], 1);
      results[0] = exchange(bit1, a, b, 2);
    } else {
      const float a = exchange(bit0, v[0][0], v[0][1], 1);
      results[0] = a + __shfl_xor_sync(~0u, a, 2);
    }
  }
};

__device__ inline float load_shared(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
// A value that the compiler must keep instead of computing it again in the loop.
__device__ inline uint32_t kept(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

// Where one thread's results of a query row go.
struct RowOut {
  float* logits = nullptr;  // column 0 is key_begin
  uint32_t limit = 0;       // columns that the row owns

  __device__ RowOut(const LogitsArgs& a, int64_t row, bool stores) {
    logits = a.logits + row * a.logits_stride;
    asm volatile("" : "+l"(logits));  // kept, not computed again for every store
    const int32_t tokens = stores ? a.rows.positions[row] + 1 : 0;
    limit = static_cast<uint32_t>(max(0, min(tokens, a.key_end) - a.key_begin));
  }
  __device__ void store(int32_t column, float value) const {
    if (static_cast<uint32_t>(column) < limit) logits[column] = value;
  }
};

}  // namespace winnow::kernels::sm90
