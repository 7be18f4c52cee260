// Selection inside one thread block: the k-th largest of a set of unsigned numbers, found by
// histograms over ever narrower ranges.
#pragma once

#include <cstdint>

namespace winnow::kernels {

inline constexpr int kTopkThreads = 512;
inline constexpr int kTopkWarps = kTopkThreads / 32;
inline constexpr int kTopkBins = 2048;
inline constexpr int kTopkBinsPerThread = kTopkBins / kTopkThreads;
// Ranges that hold no more than this are ranked by comparing all pairs, a lane each.
inline constexpr int kTopkRankAll = 32;

// Unsigned order equals score order; -0 equals +0, NaN equals -inf.
__device__ inline uint32_t order_key(float score) {
  uint32_t bits = __float_as_uint(score);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) bits = 0xff800000u;
  if (magnitude == 0) bits = 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The least score of a key; NaN for a key above +inf.
__device__ inline float score_of_key(uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

struct SelectScratch {
  alignas(16) uint32_t bins[kTopkBins];
  uint32_t warp_sums[kTopkWarps];
  uint32_t warp_min[kTopkWarps];
  uint32_t warp_max[kTopkWarps];
  uint32_t ranked[kTopkRankAll];
  uint32_t bin, above, inside, num_ranked;
};

// Minimum and maximum of what every thread brings; all threads get both.
__device__ inline void block_range(SelectScratch& s, uint32_t& low, uint32_t& high) {
  low = __reduce_min_sync(~0u, low);
  high = __reduce_max_sync(~0u, high);
  if (threadIdx.x % 32 == 0) {
    s.warp_min[threadIdx.x / 32] = low;
    s.warp_max[threadIdx.x / 32] = high;
  }
  __syncthreads();
  low = __reduce_min_sync(~0u, s.warp_min[threadIdx.x % kTopkWarps]);
  high = __reduce_max_sync(~0u, s.warp_max[threadIdx.x % kTopkWarps]);
}

// Sum of the counts that threads with a higher index bring.
__device__ inline uint32_t block_sum_above(SelectScratch& s, uint32_t count) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = count;
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_down_sync(~0u, sum, step);
    if (lane + step < 32) sum += other;
  }
  if (lane == 0) s.warp_sums[warp] = sum;
  __syncthreads();
  uint32_t above = lane > warp && lane < kTopkWarps ? s.warp_sums[lane] : 0;
  above = __reduce_add_sync(~0u, above);
  return above + sum - count;
}

// Sum of the counts that threads with a lower index bring.
__device__ inline uint32_t block_sum_below(SelectScratch& s, uint32_t count) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = count;
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) s.warp_sums[warp] = sum;
  __syncthreads();
  const uint32_t below = __reduce_add_sync(~0u, lane < warp ? s.warp_sums[lane % kTopkWarps] : 0);
  return below + sum - count;
}

// Finds the bin that holds the wanted-th largest: s.bin, how many are above it, how many inside.
__device__ inline void find_bin(SelectScratch& s, uint32_t wanted) {
  const uint4 bins = reinterpret_cast<const uint4*>(s.bins)[threadIdx.x];
  const uint32_t counts[kTopkBinsPerThread] = {bins.x, bins.y, bins.z, bins.w};
  uint32_t above = block_sum_above(s, bins.x + bins.y + bins.z + bins.w);
#pragma unroll
  for (int i = kTopkBinsPerThread - 1; i >= 0; --i) {
    if (above < wanted && wanted <= above + counts[i]) {
      s.bin = threadIdx.x * kTopkBinsPerThread + i;
      s.above = above;
      s.inside = counts[i];
    }
    above += counts[i];
  }
  __syncthreads();
}

__device__ inline void clear_bins(SelectScratch& s) {
  reinterpret_cast<uint4*>(s.bins)[threadIdx.x] = make_uint4(0, 0, 0, 0);
}

struct Selected {
  uint32_t value = 0;
  uint32_t surplus = 0;  // elements that reach the value, beyond the wanted ones
  uint32_t equal = 0;    // elements of exactly that value; only meaningful with a surplus
};

// The wanted-th largest of s.ranked[0..num_ranked); every warp finds it for itself.
__device__ inline Selected rank_all(const SelectScratch& s, uint32_t wanted) {
  const uint32_t lane = threadIdx.x % 32, count = s.num_ranked;
  const uint32_t mine = lane < count ? s.ranked[lane] : 0;
  uint32_t larger = 0, equal = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t other = s.ranked[i];
    larger += other > mine ? 1 : 0;
    equal += other == mine ? 1 : 0;
  }
  const bool found = lane < count && larger < wanted && wanted <= larger + equal;
  const int from = __ffs(__ballot_sync(~0u, found)) - 1;
  return {__shfl_sync(~0u, mine, from), __shfl_sync(~0u, larger + equal - wanted, from),
          __shfl_sync(~0u, equal, from)};
}

// The wanted-th largest element, or with slack a number that at least `wanted` elements reach and
// at most `slack` more. for_each(f) calls f(uint32_t) for every element that the thread owns; low
// and high, the same in all threads, bound the result. All threads call it and get the result; the
// scratch is free again after the next barrier.
template <typename ForEach>
__device__ Selected select_largest(SelectScratch& s,
                                   uint32_t wanted,
                                   uint32_t slack,
                                   uint32_t low,
                                   uint32_t high,
                                   ForEach&& for_each) {
  while (true) {
    const int shift = max(0, 32 - __clz(static_cast<int>(high - low)) - 11);
    clear_bins(s);
    if (threadIdx.x == 0) s.num_ranked = 0;
    __syncthreads();
    for_each([&](uint32_t x) {
      if (x >= low && x <= high) atomicAdd(&s.bins[(x - low) >> shift], 1u);
    });
    __syncthreads();
    find_bin(s, wanted);
    const uint32_t inside = s.inside;
    wanted -= s.above;
    low += s.bin << shift;
    if (shift == 0 || inside - wanted <= slack) return {low, inside - wanted, inside};
    high = low + ((1u << shift) - 1);
    if (inside <= kTopkRankAll) break;
  }
  for_each([&](uint32_t x) {
    if (x >= low && x <= high) s.ranked[atomicAdd(&s.num_ranked, 1u)] = x;
  });
  __syncthreads();
  return rank_all(s, wanted);
}

}  // namespace winnow::kernels
