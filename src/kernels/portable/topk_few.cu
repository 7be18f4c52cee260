// A row's scores lie in the registers of a cluster. The k-th best is found by histograms of all
// blocks together, over ever narrower key ranges, until the rest is few enough to be ranked one
// against all, or is one value. Every block then knows how many tokens of each block are chosen, so
// it writes its own slots, in position order, to their place. No score is looked at twice in memory
// and no block waits for another but at the exchanges.
#include "kernels/portable/topk_few.cuh"

#include <algorithm>

#include "kernels/portable/topk_select.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#include <cooperative_groups.h>
#endif

namespace winnow::kernels::portable {
namespace {

constexpr int kMaxCluster = 16;
constexpr int kMostVectors = 4;  // of 4 tokens, a thread
constexpr int kVectorTokens = kTopkThreads * 4;
constexpr int kBins = 512;
constexpr int kWords = kBins / 2;  // two 16-bit counts a word
constexpr int kMostListed = 512;
static_assert(kVectorTokens * kMostVectors < 65536, "a block's counts have 16 bits");
static_assert(kBins == kTopkThreads && kMostListed <= kTopkThreads);

struct alignas(16) Shared {
  uint32_t bins[2][kWords];  // of this block; in turn, so that others may still read the last ones
  uint32_t totals[kBins];    // of the cluster
  uint2 listed[kMostListed];
  uint2 all_listed[kMostListed];
  SelectScratch select;
  uint32_t low, high, num_listed;
  uint32_t above[kMaxCluster], inside[kMaxCluster], chosen[kMaxCluster];  // tokens of each block
  uint32_t cut_key, cut_position;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
namespace cg = cooperative_groups;

// Threads of the cluster's blocks that hold a token, in groups of `lanes` neighbours.
__device__ inline uint32_t groups_with_tokens(int32_t tokens, int32_t part, int lanes) {
  const auto of_block = [&](int32_t n) {
    return static_cast<uint32_t>((min(kTopkThreads, (n + 3) / 4) + lanes - 1) / lanes);
  };
  const int32_t full = tokens / part;
  return static_cast<uint32_t>(full) * of_block(part) + of_block(tokens - full * part);
}

template <int kVectors>
struct Few {
  Shared& s;
  cg::cluster_group cluster;
  const uint32_t size, rank;
  uint32_t keys[kVectors][4];  // 0: no token

  // A range of keys that holds the k-th best: from the least of k or more maxima of disjoint sets.
  __device__ void find_range(
      uint32_t k, int32_t tokens, int32_t part, uint32_t& low, uint32_t& high) {
    uint32_t most = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int e = 0; e < 4; ++e) most = max(most, keys[v][e]);
    }
    uint32_t least = most;
    const bool bounded = groups_with_tokens(tokens, part, 1) >= k;
    for (int lanes = 1; lanes < 32 && groups_with_tokens(tokens, part, 2 * lanes) >= k;
         lanes *= 2) {
      least = max(least, __shfl_xor_sync(~0u, least, lanes));
    }
    if (least == 0) least = ~0u;
    block_range(s.select, least, most);
    if (threadIdx.x == 0) s.low = least, s.high = most;
    cluster.sync();
    const unsigned lane = threadIdx.x % 32;
    const uint32_t from = lane < size ? lane : 0;
    low = __reduce_min_sync(~0u, *cluster.map_shared_rank(&s.low, from));
    high = __reduce_max_sync(~0u, *cluster.map_shared_rank(&s.high, from));
    if (!bounded) low = 1;
  }

  // Counts keys of [low, high] in kBins bins of 2^shift keys and finds the bin of the wanted-th
  // best: s.select.bin, above, inside. above[b] grows by block b's tokens above the bin.
  __device__ void narrow(uint32_t wanted, uint32_t low, uint32_t high, int shift, int turn) {
    uint32_t* bins = s.bins[turn % 2];
    if (threadIdx.x < kWords) bins[threadIdx.x] = 0;
    s.totals[threadIdx.x] = 0;
    if (threadIdx.x < kMaxCluster) s.inside[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t key = keys[v][e];
        if (key >= low && key <= high) {
          const uint32_t bin = (key - low) >> shift;
          atomicAdd(&bins[bin / 2], 1u << (bin % 2 * 16));
        }
      }
    }
    cluster.sync();
    // 64 threads read the 8 bins each of a block; a warp reads of one block only.
    constexpr int kReaders = kWords / 4, kAtOnce = kTopkThreads / kReaders;
    uint4 words[kMaxCluster / kAtOnce];
    const uint32_t chunk = threadIdx.x % kReaders, first = threadIdx.x / kReaders;
#pragma unroll
    for (uint32_t i = 0; i < kMaxCluster / kAtOnce; ++i) {
      const uint32_t b = i * kAtOnce + first;
      words[i] = b < size ? reinterpret_cast<const uint4*>(cluster.map_shared_rank(bins, b))[chunk]
                          : make_uint4(0, 0, 0, 0);
    }
    const auto for_counts = [&](uint32_t i, auto&& f) {
      const uint32_t of[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (uint32_t w = 0; w < 4; ++w) {
        f(chunk * 8 + w * 2, of[w] & 0xffff);
        f(chunk * 8 + w * 2 + 1, of[w] >> 16);
      }
    };
#pragma unroll
    for (uint32_t i = 0; i < kMaxCluster / kAtOnce; ++i) {
      for_counts(i, [&](uint32_t bin, uint32_t count) {
        if (count > 0) atomicAdd(&s.totals[bin], count);
      });
    }
    __syncthreads();
    const uint32_t count = s.totals[threadIdx.x];
    const uint32_t above = block_sum_above(s.select, count);
    if (above < wanted && wanted <= above + count) {
      s.select.bin = threadIdx.x;
      s.select.above = above;
      s.select.inside = count;
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kMaxCluster / kAtOnce; ++i) {
      uint32_t higher = 0;
      for_counts(i, [&](uint32_t bin, uint32_t n) {
        if (bin > s.select.bin) higher += n;
        if (bin == s.select.bin && n > 0) s.inside[i * kAtOnce + first] = n;
      });
      higher = __reduce_add_sync(~0u, higher);
      if (threadIdx.x % 32 == 0 && higher > 0) atomicAdd(&s.above[i * kAtOnce + first], higher);
    }
    __syncthreads();
  }

  // Ranks the tokens of keys [low, high], at most kMostListed in all: s.cut_*, s.chosen.
  __device__ void rank_listed(
      uint32_t wanted, uint32_t total, uint32_t low, uint32_t high, int32_t begin) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (keys[v][e] >= low && keys[v][e] <= high) {
          s.listed[atomicAdd(&s.num_listed, 1u)] =
              make_uint2(keys[v][e], static_cast<uint32_t>(begin + position(v, e)));
        }
      }
    }
    cluster.sync();
    uint32_t block = 0, before = 0;
    if (threadIdx.x < total) {
      while (before + s.inside[block] <= threadIdx.x) before += s.inside[block++];
      s.all_listed[threadIdx.x] =
          cluster.map_shared_rank(&s.listed[0], block)[threadIdx.x - before];
    }
    __syncthreads();
    if (threadIdx.x < total) {
      const uint2 own = s.all_listed[threadIdx.x];
      uint32_t better = 0;
      for (uint32_t i = 0; i < total; ++i) {
        const uint2 other = s.all_listed[i];
        better += other.x > own.x || (other.x == own.x && other.y < own.y) ? 1 : 0;
      }
      if (better < wanted) atomicAdd(&s.chosen[block], 1u);
      if (better == wanted - 1) s.cut_key = own.x, s.cut_position = own.y;
    }
    __syncthreads();
  }

  __device__ static int32_t position(int v, int e) {
    return v * kVectorTokens + static_cast<int32_t>(threadIdx.x) * 4 + e;
  }

  // before[v]: how many come before this thread's vector v, by position; counts are at most 4.
  __device__ void count_before(const uint32_t (&counts)[kVectors], uint32_t (&before)[kVectors]) {
    constexpr int kPairs = (kVectors + 1) / 2;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t base = 0;
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const uint32_t mine = counts[p * 2] | (p * 2 + 1 < kVectors ? counts[p * 2 + 1] << 16 : 0);
      uint32_t sum = mine;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
      }
      uint32_t* sums = p == 0 ? s.select.warp_min : s.select.warp_max;
      if (lane == 31) sums[warp] = sum;
      __syncthreads();
      const uint32_t of_warp = sums[lane % kTopkWarps];
      const uint32_t below = __reduce_add_sync(~0u, lane < warp ? of_warp : 0);
      const uint32_t all = __reduce_add_sync(~0u, lane < kTopkWarps ? of_warp : 0);
      const uint32_t here = below + sum - mine;
      before[p * 2] = base + (here & 0xffff);
      base += all & 0xffff;
      if (p * 2 + 1 < kVectors) {
        before[p * 2 + 1] = base + (here >> 16);
        base += all >> 16;
      }
    }
    __syncthreads();
  }
};

// The first tokens of a row that sees no more than k.
__device__ inline void take_all(const TopkParams& p,
                                int64_t t,
                                int32_t tokens,
                                const int32_t* pages) {
  int32_t* slots = p.slots + t * p.topk;
  for (int32_t i = threadIdx.x; i < p.topk; i += kTopkThreads) {
    slots[i] = i < tokens ? pages[i / p.page_size] * p.page_size + i % p.page_size : -1;
  }
  if (threadIdx.x == 0) p.lens[t] = tokens;
}
#endif

template <int kVectors>
__global__ void __launch_bounds__(kTopkThreads, 1)
    topk_few_kernel(const __grid_constant__ TopkParams p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ Shared s;
  cg::cluster_group cluster = cg::this_cluster();
  Few<kVectors> few{.s = s,
                    .cluster = cluster,
                    .size = cluster.num_blocks(),
                    .rank = cluster.block_rank(),
                    .keys = {}};
  if (threadIdx.x < kMaxCluster) s.above[threadIdx.x] = s.chosen[threadIdx.x] = 0;
  if (threadIdx.x == 0) s.num_listed = 0;
  cudaGridDependencySynchronize();  // launched while the logits are still being written
  const int64_t t = blockIdx.x / few.size;
  const auto k = static_cast<uint32_t>(p.topk);
  const int32_t tokens = p.rows.positions[t] + 1;
  const int32_t* pages = p.rows.page_tables + p.rows.seq_of_row[t] * p.rows.page_table_stride;
  if (tokens <= p.topk) {  // uniform over the cluster: nobody waits for those who leave
    if (few.rank == 0) take_all(p, t, tokens, pages);
    return;
  }
  const auto size = static_cast<int32_t>(few.size);
  const int32_t part = ((tokens + size - 1) / size + 3) / 4 * 4;
  const int32_t begin = static_cast<int32_t>(few.rank) * part;
  const int32_t here = min(max(tokens - begin, 0), part);
  const float* logits = p.logits + t * p.logits_stride + begin;
  int32_t page_ids[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int32_t at = few.position(v, 0);
    float4 four = make_float4(0, 0, 0, 0);
    page_ids[v] = 0;
    if (at < here) {
      four = *reinterpret_cast<const float4*>(logits + at);  // rows are padded to 16 bytes
      page_ids[v] = __ldg(pages + (begin + at) / p.page_size);
    }
    few.keys[v][0] = at < here ? order_key(four.x) : 0;
    few.keys[v][1] = at + 1 < here ? order_key(four.y) : 0;
    few.keys[v][2] = at + 2 < here ? order_key(four.z) : 0;
    few.keys[v][3] = at + 3 < here ? order_key(four.w) : 0;
  }

  uint32_t low, high, wanted = k;
  few.find_range(k, tokens, part, low, high);
  bool ties = false;
  for (int turn = 0;; ++turn) {
    const int shift = max(0, 32 - __clz(static_cast<int>(high - low)) - 9);
    few.narrow(wanted, low, high, shift, turn);
    const uint32_t inside = s.select.inside;
    wanted -= s.select.above;
    low += s.select.bin << shift;
    high = min(high, low + ((1u << shift) - 1));
    ties = shift == 0 && inside > wanted;
    if (inside == wanted || ties) {
      if (threadIdx.x == 0) {  // blocks take their ties in order
        uint32_t left = wanted;
        for (uint32_t b = 0; b < few.size; ++b) {
          s.chosen[b] = min(left, s.inside[b]);
          left -= s.chosen[b];
        }
        s.cut_key = low;
        s.cut_position = ~0u;
      }
      __syncthreads();
      break;
    }
    if (inside <= kMostListed) {
      few.rank_listed(wanted, inside, low, high, begin);
      break;
    }
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");  // others have been read

  const uint32_t cut_key = s.cut_key, cut_position = s.cut_position;
  uint32_t first = 0, equals_left = s.chosen[few.rank];
  for (uint32_t b = 0; b < few.rank; ++b) first += s.above[b] + s.chosen[b];
  uint32_t counts[kVectors], before[kVectors], chosen[kVectors];
  if (ties) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      counts[v] = 0;
#pragma unroll
      for (int e = 0; e < 4; ++e) counts[v] += few.keys[v][e] == cut_key ? 1 : 0;
    }
    few.count_before(counts, before);
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    chosen[v] = 0;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const uint32_t key = few.keys[v][e];
      bool in = key > cut_key;
      if (key == cut_key) {
        in = ties ? before[v]++ < equals_left
                  : static_cast<uint32_t>(begin + few.position(v, e)) <= cut_position;
      }
      chosen[v] |= in ? 1u << e : 0;
    }
    counts[v] = __popc(chosen[v]);
  }
  few.count_before(counts, before);
  int32_t* slots = p.slots + t * p.topk + first;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int32_t slot = page_ids[v] * p.page_size + (begin + few.position(v, 0)) % p.page_size;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((chosen[v] >> e & 1) != 0) slots[before[v]++] = slot + e;
    }
  }
  if (few.rank == 0 && threadIdx.x == 0) p.lens[t] = p.topk;
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

template <int kVectors>
cudaError_t launch(const TopkParams& params, int32_t cluster, cudaStream_t stream) {
  auto* kernel = &topk_few_kernel<kVectors>;
  if (cluster > 8) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
  }
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(params.rows.num_rows) * cluster);
  config.blockDim = dim3(kTopkThreads);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, kernel, params);
}

}  // namespace

int32_t topk_few_cluster(const TopkParams& p, int64_t tokens, int32_t num_sms) {
  if (p.page_size % 4 != 0 || p.logits_stride % 4 != 0 ||
      reinterpret_cast<uintptr_t>(p.logits) % 16 != 0) {
    return 0;
  }
  int32_t size = 1;
  while (size < kMaxCluster && 2 * size * static_cast<int64_t>(p.rows.num_rows) <= num_sms &&
         tokens >= int64_t{2} * size * kVectorTokens) {
    size *= 2;
  }
  // Smaller clusters are no quicker this way than with a guessed threshold.
  const bool fits = tokens <= int64_t{size} * kMostVectors * kVectorTokens;
  return size == kMaxCluster && fits ? size : 0;
}

cudaError_t topk_few(const TopkParams& params,
                     int64_t tokens,
                     int32_t cluster,
                     cudaStream_t stream) {
  const int64_t part = ((tokens + cluster - 1) / cluster + 3) / 4 * 4;
  return part <= kVectorTokens       ? launch<1>(params, cluster, stream)
         : part <= 2 * kVectorTokens ? launch<2>(params, cluster, stream)
                                     : launch<4>(params, cluster, stream);
}

}  // namespace winnow::kernels::portable
