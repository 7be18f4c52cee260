// Exact top-k of each row of logits, as slots in position order.
//
// One thread block a row, or on sm_90 a cluster of blocks a row when rows are few. A sample of the
// row gives a score that a little more than K tokens are likely to reach; one pass over the row
// keeps the tokens that do (score and position, in shared memory), and the K-th of those is found
// exactly. A guess that kept too few is repeated without a threshold. One that keeps too many is
// repeated in steps that cut the buffer back to its K best whenever it could overflow: in position
// order later equals of the K-th can never win, so nothing is lost.
#include "kernels/indexer.h"
#include "kernels/portable/topk_few.cuh"
#include "kernels/portable/topk_select.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#include <cooperative_groups.h>
#endif

namespace winnow::kernels::portable {

namespace {

constexpr int kMaxTopk = 2048;
constexpr int kChunkVectors = 2;                          // float4 loads a thread
constexpr int kChunk = kTopkThreads * 4 * kChunkVectors;  // tokens a step
constexpr int kAhead = 2;                                 // steps loaded ahead
constexpr int kBufferTrigger = 6144;                      // cut back above this
constexpr int kBuffer = kBufferTrigger + kChunk;
constexpr int kHeld = 8;                           // entries a thread in registers
constexpr int kGuessAbove = kHeld * kTopkThreads;  // tokens
constexpr int kSampleVectors = 2;
constexpr int kSample = kTopkThreads * 4 * kSampleVectors;
constexpr int kMaxCluster = 16;
constexpr uint32_t kMaxPosition = (1u << 30) - 1;
static_assert(kBufferTrigger >= 2 * kMaxTopk, "a merge adds at most K to a buffer cut back to K");

struct alignas(16) Shared {
  uint2 buffer[kBuffer];  // score bits and position, in any order
  SelectScratch select;   // its bins also hold the K positions of the result
  uint32_t count;
};
static_assert(kMaxTopk <= kTopkBins, "positions fit the bins");

// The end of the K best: a larger key, or this key at this position or a lower one.
struct Cut {
  uint32_t key;
  uint32_t last_position;
  __device__ bool keeps(uint32_t k, uint32_t position) const {
    return k > key || (k == key && position <= last_position);
  }
};

// The buffer as keys and positions: in registers when it fits there.
struct Entries {
  const uint2* buffer;
  uint32_t count;
  uint32_t keys[kHeld], positions[kHeld];

  __device__ explicit Entries(const Shared& s) : buffer(s.buffer), count(s.count) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const uint32_t at = threadIdx.x + i * kTopkThreads;
      const uint2 entry = at < count ? buffer[at] : make_uint2(0, 0);
      keys[i] = order_key(__uint_as_float(entry.x));
      positions[i] = entry.y;
    }
  }
  // f(key, position) for every entry of this thread.
  template <typename F>
  __device__ void for_each(F&& f) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (threadIdx.x + i * kTopkThreads < count) f(keys[i], positions[i]);
    }
    for (uint32_t at = threadIdx.x + kHeld * kTopkThreads; at < count; at += kTopkThreads) {
      f(order_key(__uint_as_float(buffer[at].x)), buffer[at].y);
    }
  }
};

// Where the k best of the entries end; needs k of them.
__device__ Cut find_cut(SelectScratch& s, const Entries& entries, uint32_t k) {
  uint32_t low = ~0u, high = 0;
  entries.for_each([&](uint32_t key, uint32_t) {
    low = min(low, key);
    high = max(high, key);
  });
  block_range(s, low, high);
  const Selected best = select_largest(s, k, 0, low, high, [&](auto&& f) {
    entries.for_each([&](uint32_t key, uint32_t) { f(key); });
  });
  if (best.surplus == 0) return {best.value, ~0u};
  __syncthreads();
  // Equal scores: the lowest positions, that is, the largest complements.
  const uint32_t ties = best.equal - best.surplus;
  const Selected last = select_largest(s, ties, 0, ~kMaxPosition, ~0u, [&](auto&& f) {
    entries.for_each([&](uint32_t key, uint32_t position) {
      if (key == best.value) f(~position);
    });
  });
  return {best.value, ~last.value};
}

// Which scores enter the buffer.
struct Threshold {
  bool all = true;  // every token, NaN included
  float score = 0;
};

struct Row {
  const float* logits;
  int32_t tokens;
  bool vector;  // 16-byte loads are aligned
};

__device__ inline float4 load4(const Row& row, int32_t i) {
  if (row.vector && i + 3 < row.tokens) {
    return __ldg(reinterpret_cast<const float4*>(row.logits + i));
  }
  float4 v = make_float4(0, 0, 0, 0);
  if (i < row.tokens) v.x = row.logits[i];
  if (i + 1 < row.tokens) v.y = row.logits[i + 1];
  if (i + 2 < row.tokens) v.z = row.logits[i + 2];
  if (i + 3 < row.tokens) v.w = row.logits[i + 3];
  return v;
}

// A score that a little more than k tokens are likely to reach, from vectors spread over the row
// with some jitter against periodic scores.
__device__ Threshold guess_threshold(const Row& row, int32_t k, Shared& s) {
  const int32_t groups = row.tokens / 4;
  const float step = static_cast<float>(groups) / (kSample / 4);
  float4 values[kSampleVectors];
#pragma unroll
  for (int v = 0; v < kSampleVectors; ++v) {
    const uint32_t i = threadIdx.x * kSampleVectors + v;
    const float jitter = static_cast<float>((i * 2654435761u) >> 16) * (1.0f / 65536);
    const auto group = static_cast<int32_t>((static_cast<float>(i) + jitter) * step);
    values[v] = load4(row, 4 * min(group, groups - 1));
  }
  uint32_t keys[4 * kSampleVectors], most = 0;
#pragma unroll
  for (int v = 0; v < kSampleVectors; ++v) {
    keys[4 * v] = order_key(values[v].x);
    keys[4 * v + 1] = order_key(values[v].y);
    keys[4 * v + 2] = order_key(values[v].z);
    keys[4 * v + 3] = order_key(values[v].w);
  }
  uint32_t least = ~0u;
#pragma unroll
  for (const uint32_t key : keys) {
    most = max(most, key);
    least = min(least, key);
  }
  const float rank = static_cast<float>(k) * kSample / static_cast<float>(row.tokens);
  const uint32_t wanted =
      min(static_cast<uint32_t>(rank + 6.0f * sqrtf(rank) + 8.0f), static_cast<uint32_t>(kSample));
  // A bound from below that is nearer than the minimum: every one of at least `wanted` groups of
  // samples has an element that reaches the least of the groups' maxima.
  if (wanted <= kTopkThreads) {
    for (int lanes = 1; lanes < 32 && wanted * 2 * lanes <= kTopkThreads; lanes *= 2) {
      most = max(most, __shfl_xor_sync(~0u, most, lanes));
    }
    least = most;
  }
  block_range(s.select, least, most);
  const uint32_t key = select_largest(s.select, wanted, wanted / 4, least, most, [&](auto&& f) {
#pragma unroll
                         for (const uint32_t x : keys) f(x);
                       }).value;
  // A sample of -inf and NaN says nothing.
  const float score = score_of_key(key);
  return {.all = !(score > -INFINITY), .score = score};
}

// Appends to the buffer the values of a step that enter; warps take turns by an atomic, and the
// order in the buffer never matters. True: the buffer is past its trigger. What would lie beyond
// its end is counted, not stored.
template <typename Enters>
__device__ inline bool push(Shared& s,
                            const float (&values)[kChunkVectors][4],
                            int32_t position,
                            Enters&& enters) {
  uint32_t mine = 0;
#pragma unroll
  for (int v = 0; v < kChunkVectors; ++v) {
#pragma unroll
    for (int e = 0; e < 4; ++e) mine += enters(v, e) ? 1 : 0;
  }
  const int lane = threadIdx.x % 32;
  uint32_t sum = mine;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  uint32_t base = 0;
  if (lane == 31 && sum > 0) base = atomicAdd(&s.count, sum);
  base = __shfl_sync(~0u, base, 31);
  const uint32_t total = __shfl_sync(~0u, sum, 31);
  const bool full = base + total > kBufferTrigger;
  if (base + total > kBuffer) return full;
  uint32_t at = base + sum - mine;
#pragma unroll
  for (int v = 0; v < kChunkVectors; ++v) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (enters(v, e)) {
        s.buffer[at++] = {__float_as_uint(values[v][e]),
                          static_cast<uint32_t>(position + v * kTopkThreads * 4 + e)};
      }
    }
  }
  return full;
}

// Cuts the buffer back to its k best. Needs more than k in it.
__device__ __noinline__ Cut keep_best(Shared& s, uint32_t k) {
  const uint32_t count = s.count;
  const Cut cut = find_cut(s.select, Entries(s), k);
  __syncthreads();
  if (threadIdx.x == 0) s.count = 0;
  const int lane = threadIdx.x % 32;
  // Reads run ahead of writes: what a step writes lies below what it and its forerunners read.
  for (uint32_t begin = 0; begin < count; begin += kTopkThreads) {
    const uint32_t i = begin + threadIdx.x;
    const uint2 entry = i < count ? s.buffer[i] : make_uint2(0, 0);
    const bool stays = i < count && cut.keeps(order_key(__uint_as_float(entry.x)), entry.y);
    const uint32_t ballot = __ballot_sync(~0u, stays);
    __syncthreads();
    uint32_t base = 0;
    if (lane == 0 && ballot != 0) base = atomicAdd(&s.count, __popc(ballot));
    base = __shfl_sync(~0u, base, 0);
    if (stays) s.buffer[base + __popc(ballot & ((1u << lane) - 1))] = entry;
  }
  __syncthreads();
  return cut;
}

// Buffers the tokens of [begin, end) that reach the threshold; begin is a multiple of 4. Not in
// steps: s.count ends above kBuffer if they did not fit. In steps: the k best of them stay.
template <bool kInSteps>
__device__ void filter_range(
    const Row& row, int32_t begin, int32_t end, int32_t k, Threshold t, Shared& s) {
  const int32_t own = static_cast<int32_t>(threadIdx.x) * 4;
  float ahead[kAhead][kChunkVectors][4];
  const auto load = [&](float(&to)[kChunkVectors][4], int32_t from) {
#pragma unroll
    for (int v = 0; v < kChunkVectors; ++v) {
      const int32_t i = from + v * kTopkThreads * 4 + own;
      const float4 four = i < end ? load4(row, i) : make_float4(0, 0, 0, 0);
      to[v][0] = four.x, to[v][1] = four.y, to[v][2] = four.z, to[v][3] = four.w;
    }
  };
  const auto filter = [&](const float(&values)[kChunkVectors][4], int32_t from) {
    const int32_t position = from + own;
    [[maybe_unused]] bool full;
    if (!t.all && from + kChunk <= end) {
      full = push(s, values, position, [&](int v, int e) { return values[v][e] >= t.score; });
    } else {
      full = push(s, values, position, [&](int v, int e) {
        return position + v * kTopkThreads * 4 + e < end && (t.all || values[v][e] >= t.score);
      });
    }
    if constexpr (kInSteps) {
      if (__syncthreads_or(full) != 0 && from + kChunk < end) {
        // From here on an equal score comes too late: only the next greater score enters.
        t = {.all = false, .score = score_of_key(keep_best(s, k).key + 1)};
      }
    }
  };
#pragma unroll
  for (int a = 0; a < kAhead; ++a) load(ahead[a], begin + a * kChunk);
  for (int32_t first = begin; first < end; first += kAhead * kChunk) {
    // The same registers at every turn: moving values on would wait for loads still under way.
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int32_t from = first + a * kChunk;
      if (from >= end) break;
      filter(ahead[a], from);
      load(ahead[a], from + kAhead * kChunk);
    }
  }
  __syncthreads();
}

__device__ inline int32_t slot_of(const int32_t* pages, int32_t position, int32_t page_size) {
  return pages[position / page_size] * page_size + position % page_size;
}

// Positions of the entries that the cut keeps, ascending, into s.select.bins. `marks` has a bit a
// token.
__device__ void order_positions(
    Shared& s, const Entries& entries, Cut cut, int32_t tokens, uint32_t* marks) {
  const int32_t words = (tokens + 127) / 128 * 4;
  for (int32_t i = threadIdx.x; i < words / 4; i += kTopkThreads) {
    reinterpret_cast<uint4*>(marks)[i] = make_uint4(0, 0, 0, 0);
  }
  __syncthreads();
  entries.for_each([&](uint32_t key, uint32_t position) {
    if (cut.keeps(key, position)) atomicOr(&marks[position / 32], 1u << (position % 32));
  });
  __syncthreads();
  const int32_t part = (words / 4 + kTopkThreads - 1) / kTopkThreads;  // vectors a thread
  const int32_t begin = min(static_cast<int32_t>(threadIdx.x) * part, words / 4);
  const int32_t end = min(begin + part, words / 4);
  const auto* vectors = reinterpret_cast<const uint4*>(marks);
  uint32_t mine = 0;
  for (int32_t i = begin; i < end; ++i) {
    const uint4 v = vectors[i];
    mine += __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w);
  }
  uint32_t to = block_sum_below(s.select, mine);
  if (mine > 0) {
    for (int32_t i = begin; i < end; ++i) {
      const uint4 v = vectors[i];
      const uint32_t four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        for (uint32_t bits = four[w]; bits != 0; bits &= bits - 1) {
          s.select.bins[to++] = static_cast<uint32_t>(i * 128 + w * 32 + __ffs(bits) - 1);
        }
      }
    }
  }
  __syncthreads();
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
namespace cg = cooperative_groups;

// The buffers of a cluster one behind the other in its first block, cut back where they overflow.
__device__ __noinline__ void merge_large(cg::cluster_group& cluster, Shared& s, uint32_t k) {
  if (s.count > k) keep_best(s, k);
  cluster.sync();
  if (cluster.block_rank() != 0) return;
  for (unsigned r = 1; r < cluster.num_blocks(); ++r) {
    const uint32_t more = *cluster.map_shared_rank(&s.count, r);
    if (s.count + more > kBuffer) keep_best(s, k);
    const uint32_t base = s.count;
    const uint2* from = cluster.map_shared_rank(&s.buffer[0], r);
    for (uint32_t i = threadIdx.x; i < more; i += kTopkThreads) s.buffer[base + i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0) s.count = base + more;
    __syncthreads();
  }
}

// Brings the candidates of a cluster together in its first block. False: fewer than k in all.
__device__ bool merge_cluster(Shared& s, uint32_t k) {
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned size = cluster.num_blocks();
  const unsigned rank = cluster.block_rank(), lane = threadIdx.x % 32;
  cluster.sync();
  const uint32_t count = lane < size ? *cluster.map_shared_rank(&s.count, lane) : 0;
  const uint32_t total = __reduce_add_sync(~0u, count);
  const uint32_t before = __reduce_add_sync(~0u, lane < rank ? count : 0);
  const uint32_t own = __shfl_sync(~0u, count, rank);
  if (total < k || total > kBuffer) {
    cluster.sync();  // everyone has read the counts
    if (total < k) return false;
    merge_large(cluster, s, k);
    cluster.sync();  // nobody reads this block any more
    return true;
  }
  if (rank != 0) {
    uint2* to = cluster.map_shared_rank(&s.buffer[0], 0) + before;
    for (uint32_t i = threadIdx.x; i < own; i += kTopkThreads) to[i] = s.buffer[i];
  }
  cluster.sync();
  if (rank == 0 && threadIdx.x == 0) s.count = total;
  __syncthreads();
  return true;
}
#endif

template <bool kCluster>
__global__ void __launch_bounds__(kTopkThreads, 2)
    topk_kernel(const __grid_constant__ TopkParams p, int32_t cluster_size) {
  extern __shared__ __align__(16) uint8_t shared_bytes[];
  Shared& s = *reinterpret_cast<Shared*>(shared_bytes);
  auto* marks = reinterpret_cast<uint32_t*>(shared_bytes + sizeof(Shared));

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // launched while the logits are still being written
#endif
  const int64_t t = blockIdx.x / cluster_size;
  const int32_t rank = static_cast<int32_t>(blockIdx.x % cluster_size);
  const int32_t tokens = p.rows.positions[t] + 1;
  const int32_t k = p.topk;
  const int32_t* pages = p.rows.page_tables + p.rows.seq_of_row[t] * p.rows.page_table_stride;
  int32_t* slots = p.slots + t * k;
  const int32_t found = min(tokens, k);
  if (tokens <= k) {  // uniform over the cluster: nobody waits for those who leave
    if (rank != 0) return;
    for (int32_t i = threadIdx.x; i < k; i += kTopkThreads) {
      slots[i] = i < found ? slot_of(pages, i, p.page_size) : -1;
    }
    if (threadIdx.x == 0) p.lens[t] = found;
    return;
  }

  const Row row{
      .logits = p.logits + t * p.logits_stride,
      .tokens = tokens,
      .vector = p.logits_stride % 4 == 0 && reinterpret_cast<uintptr_t>(p.logits) % 16 == 0};
  const int32_t part = ((tokens + cluster_size - 1) / cluster_size + 3) / 4 * 4;
  const int32_t begin = min(rank * part, tokens), end = min(begin + part, tokens);
  Threshold threshold;
  if (tokens > max(2 * k, kGuessAbove)) threshold = guess_threshold(row, k, s);
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) s.count = 0;
    __syncthreads();
    filter_range<false>(row, begin, end, k, threshold, s);
    if (s.count > kBuffer) {
      __syncthreads();
      if (threadIdx.x == 0) s.count = 0;
      __syncthreads();
      filter_range<true>(row, begin, end, k, threshold, s);
    }
    bool enough = s.count >= static_cast<uint32_t>(k);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    if constexpr (kCluster) enough = merge_cluster(s, k);
#endif
    if (enough) break;
    threshold = {};
  }
  if (kCluster && rank != 0) return;

  const Entries entries(s);
  const Cut cut = find_cut(s.select, entries, k);
  __syncthreads();
  order_positions(s, entries, cut, tokens, marks);
  for (int32_t i = threadIdx.x; i < k; i += kTopkThreads) {
    slots[i] = slot_of(pages, static_cast<int32_t>(s.select.bins[i]), p.page_size);
  }
  if (threadIdx.x == 0) p.lens[t] = found;
}

int32_t cluster_size_for(int32_t rows, int64_t tokens, int32_t num_sms) {
  int32_t size = 1;
  // A block should still have two steps of work, and two rows' blocks should fit the device.
  while (size < kMaxCluster && 2 * size * static_cast<int64_t>(rows) <= num_sms &&
         tokens >= int64_t{2} * size * kChunk) {
    size *= 2;
  }
  return size;
}

}  // namespace

cudaError_t topk(const TopkParams& params, cudaStream_t stream) {
  if (params.rows.num_rows == 0) return cudaSuccess;
  if (params.topk < 1 || params.topk > kMaxTopk) return cudaErrorInvalidValue;
  const int64_t tokens = params.max_tokens > 0 ? params.max_tokens : params.logits_stride;
  const auto bytes = static_cast<int>(sizeof(Shared) + (tokens + 127) / 128 * 16);
  int device = 0, num_sms = 0, major = 0, shared_limit = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (bytes > shared_limit) return cudaErrorInvalidValue;
  if (major >= 9) {
    const int32_t few = topk_few_cluster(params, tokens, num_sms);
    if (few > 0) return topk_few(params, tokens, few, stream);
  }
  const int32_t cluster = major >= 9 ? cluster_size_for(params.rows.num_rows, tokens, num_sms) : 1;
  auto* kernel = cluster > 1 ? &topk_kernel<true> : &topk_kernel<false>;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  if (cluster > 8) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
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
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = major < 9 ? 0 : cluster > 1 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, params, cluster);
}

}  // namespace winnow::kernels::portable
