// Which neighbouring rows share a gather. One block looks at one group of rows: the union of their
// slots, in slot order, and for every slot which rows chose it. The page numbers that occur are
// ranked first (a bit a page), so that the work grows with the context, not with the pool; then a
// bit a token and row, in windows of 2,048 occurring pages. All results are functions of the sets
// alone; only the order of the two lists varies from run to run, and no result hangs on it.
#include <algorithm>
#include <bit>

#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kPerThread = kMostGroupEntries / kThreads;
constexpr int kAtOnce = 8;  // entries under way a thread
constexpr int kWindowPages = 2048;
constexpr int kBlockTokens = 64;
// Every so many slots one is looked at to guess a union's size.
constexpr int kSampleStep = 8;
constexpr int kMostSampleBits = 1 << 17;

struct GroupCall {
  SparseMlaCall call;
  int32_t page_words;    // of the pool, 32 pages each
  int32_t window_pages;  // at most kWindowPages
  int32_t bits_words;    // room for the bits, and before them for a byte a page
  int32_t percent;
  uint32_t sample_mask;  // bits of the sample's map, a power of two, less one
};

struct Scan {
  int32_t before;  // of the threads before this one
  int32_t total;
};

__device__ __forceinline__ Scan block_scan(int32_t value, int32_t* sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const int32_t other = __shfl_up_sync(0xffffffffu, sum, d);
    if (lane >= d) sum += other;
  }
  __syncthreads();  // the scan before has been read
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  const int32_t of_warp = sums[lane];
  const int32_t total = __reduce_add_sync(0xffffffffu, of_warp);
  const int32_t before = __reduce_add_sync(0xffffffffu, lane < warp ? of_warp : 0);
  return {before + sum - value, total};
}

// The line's rest, which this thread and its neighbours want next, comes to the L2 as well.
__device__ __forceinline__ int4 load_four(const int32_t* from) {
  int4 v;
  asm("ld.global.nc.L2::128B.v4.s32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
}

template <int kRows>
struct Builder {
  static constexpr int kThreadsOfRow = kThreads / kRows;

  const GroupCall& c;
  int64_t group;
  int32_t named = 0;   // valid entries that this thread has seen
  int32_t marked = 0;  // of the rows' bits, those that this thread counted

  // Shared memory, in this order.
  // [page_words] which of 32 pages occur, and how many do before them
  __device__ __forceinline__ uint2* pages() const {
    extern __shared__ __align__(16) uint8_t raw[];
    return reinterpret_cast<uint2*>(raw);
  }
  __device__ __forceinline__ uint32_t* bits() const {  // [window_pages * 2][kRows]
    return reinterpret_cast<uint32_t*>(pages() + (c.page_words + 1) / 2 * 2);
  }
  // [limit] tokens of the window that occur, by local number
  __device__ __forceinline__ int32_t* order() const {
    return reinterpret_cast<int32_t*>(bits() + c.bits_words);
  }
  // [window_pages] the occurring pages of the window
  __device__ __forceinline__ int32_t* page_of() const { return order() + c.call.groups.limit; }
  __device__ __forceinline__ int32_t* sums() const { return page_of() + c.window_pages; }
  // [2] slots of the sample that the rows name, and different ones among them
  __device__ __forceinline__ int32_t* sample() const { return sums() + kWarps; }

  // Local number of a page among those that occur.
  __device__ __forceinline__ int32_t local_page(int32_t page) const {
    const uint2 word = pages()[page >> 5];
    return static_cast<int32_t>(word.y) + __popc(word.x & ~(0xffffffffu << (page & 31)));
  }

  // Calls f with pairs of this thread's entries of its row, in the row's order; -1 or beyond the
  // pool where an entry does not count. They are read again from the L2 in each phase: registers
  // for them would halve the warps that hide each other's waits.
  template <class F>
  __device__ __forceinline__ void for_pairs(F f) const {
    const SparseMlaParams& p = c.call.p;
    const auto row = static_cast<int32_t>(group * kRows + threadIdx.x / kThreadsOfRow);
    const int first = static_cast<int>(threadIdx.x) % kThreadsOfRow * kPerThread;
    const int len = row < p.num_rows
                        ? min(max(__ldg(p.lens + row), 0), static_cast<int32_t>(p.slots_stride))
                        : 0;
    const int32_t* from = p.slots + row * p.slots_stride;
    const bool vectors = p.slots_stride % 4 == 0 && reinterpret_cast<uintptr_t>(p.slots) % 16 == 0;
    const int end = min(first + kPerThread, len);
#pragma unroll 1
    for (int at = first; at < end; at += kAtOnce) {
      int32_t v[kAtOnce];
      if (vectors && at + kAtOnce <= end) {
#pragma unroll
        for (int i = 0; i < kAtOnce; i += 4) {
          const int4 four = load_four(from + at + i);
          v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
        }
      } else {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) v[i] = at + i < end ? __ldg(from + at + i) : -1;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; i += 2) f(v[i], v[i + 1]);
    }
  }

  // Most groups that do not share are far from it: a sample of their slots says so. Its standard
  // deviation is at most sqrt(size) / 2 slots; who is nearer than three of those is looked at in
  // full.
  __device__ __forceinline__ bool is_hopeless() const {
    const int64_t size = sample()[0];
    const int64_t beyond = int64_t{sample()[1]} * 100 - size * c.percent;
    return beyond > 0 && 4 * beyond * beyond > 9 * 100 * 100 * size;
  }

  // Returns how many pages occur; -1: the rows name too many different slots, by a guess.
  __device__ __forceinline__ int32_t rank_pages() {
    // A byte a page first, in the room of the bits: plain stores, where atomics on few words
    // collide.
    auto* flags = reinterpret_cast<uint8_t*>(bits());
    for (int w = threadIdx.x; w < c.page_words * 2; w += kThreads) {
      reinterpret_cast<uint4*>(bits())[w] = make_uint4(0, 0, 0, 0);
    }
    auto* seen = reinterpret_cast<uint32_t*>(order());
    for (uint32_t w = threadIdx.x; w <= c.sample_mask / 32; w += kThreads) seen[w] = 0;
    if (threadIdx.x < 2) sample()[threadIdx.x] = 0;
    __syncthreads();
    named = 0;
    int32_t sampled = 0, different = 0;
    const auto look_at = [&](int32_t slot) {
      if (!slot_is_valid(c.call, slot)) return;
      flags[slot >> 6] = 1;
      ++named;
      if (slot % kSampleStep != 0) return;
      const uint32_t at = static_cast<uint32_t>(slot / kSampleStep) & c.sample_mask;
      const uint32_t bit = 1u << (at & 31);
      ++sampled;
      if ((atomicOr(seen + (at >> 5), bit) & bit) == 0) ++different;
    };
    for_pairs([&](int32_t first, int32_t second) {
      look_at(first);
      look_at(second);
    });
    sampled = __reduce_add_sync(0xffffffffu, sampled);
    different = __reduce_add_sync(0xffffffffu, different);
    if (threadIdx.x % 32 == 0) {
      atomicAdd(sample(), sampled);
      atomicAdd(sample() + 1, different);
    }
    __syncthreads();
    if (is_hopeless()) return -1;
    for (int w = threadIdx.x / 32; w < c.page_words; w += kWarps) {
      const uint32_t word = __ballot_sync(0xffffffffu, flags[w * 32 + threadIdx.x % 32] != 0);
      if (threadIdx.x % 32 == 0) pages()[w].x = word;
    }
    __syncthreads();
    const int words = (c.page_words + kThreads - 1) / kThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * words, c.page_words);
    const int end = min(begin + words, c.page_words);
    int32_t count = 0;
    for (int w = begin; w < end; ++w) count += __popc(pages()[w].x);
    const Scan scan = block_scan(count, sums());
    int32_t rank = scan.before;
    for (int w = begin; w < end; ++w) {
      pages()[w].y = static_cast<uint32_t>(rank);
      rank += __popc(pages()[w].x);
    }
    __syncthreads();
    return scan.total;
  }

  // Bits of the window's tokens, and the window's page numbers.
  __device__ __forceinline__ void mark(int32_t first_page) {
    for (int w = threadIdx.x; w < c.window_pages * 2 * kRows / 4; w += kThreads) {
      reinterpret_cast<uint4*>(bits())[w] = make_uint4(0, 0, 0, 0);
    }
    for (int page = threadIdx.x; page < c.page_words * 32; page += kThreads) {
      if ((pages()[page >> 5].x >> (page & 31) & 1) == 0) continue;
      const int32_t local = local_page(page) - first_page;
      if (local >= 0 && local < c.window_pages) page_of()[local] = page;
    }
    __syncthreads();
    uint32_t* of_row = bits() + threadIdx.x / kThreadsOfRow;
    // The word of a slot's bit; -1: not in this window.
    const auto word_of = [&](int32_t slot) {
      if (!slot_is_valid(c.call, slot)) return -1;
      const int32_t local = local_page(slot >> 6) - first_page;
      if (static_cast<uint32_t>(local) >= static_cast<uint32_t>(c.window_pages)) return -1;
      return (local * 2 + (slot >> 5 & 1)) * kRows;
    };
    for_pairs([&](int32_t first, int32_t second) {
      const int32_t at = word_of(first), next = word_of(second);
      uint32_t bit = 1u << (first & 31);
      const uint32_t next_bit = 1u << (second & 31);
      if (at == next) bit |= next_bit;
      if (at >= 0) atomicOr(of_row + at, bit);
      if (next >= 0 && at != next) atomicOr(of_row + next, next_bit);
    });
    __syncthreads();
  }

  __device__ __forceinline__ void load_rows(int word, uint32_t (&of_rows)[kRows]) const {
    const uint32_t* from = bits() + word * kRows;
    if constexpr (kRows == 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from);
      of_rows[0] = two.x, of_rows[1] = two.y;
    } else {
#pragma unroll
      for (int r = 0; r < kRows; r += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(from + r);
        of_rows[r] = four.x, of_rows[r + 1] = four.y;
        of_rows[r + 2] = four.z, of_rows[r + 3] = four.w;
      }
    }
  }
  // The bits of all rows together; count: how many bits the rows have set.
  __device__ __forceinline__ uint32_t any_row(int word, int32_t& count) const {
    uint32_t of_rows[kRows], any = 0;
    load_rows(word, of_rows);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      any |= of_rows[r];
      count += __popc(of_rows[r]);
    }
    return any;
  }

  // The window's tokens in order; writes them to order where they fit below limit. Returns how
  // many.
  __device__ __forceinline__ int32_t compact(int32_t pages_here, int32_t room) {
    const int all = pages_here * 2, words = (all + kThreads - 1) / kThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * words, all),
              end = min(begin + words, all);
    int32_t count = 0;
    for (int w = begin; w < end; ++w) count += __popc(any_row(w, marked));
    const Scan scan = block_scan(count, sums());
    if (scan.total > room) return scan.total;
    int32_t rank = scan.before, ignored = 0;
    for (int w = begin; w < end; ++w) {
      for (uint32_t left = any_row(w, ignored); left != 0; left &= left - 1) {
        order()[rank++] = w * 32 + __ffs(static_cast<int>(left)) - 1;
      }
    }
    __syncthreads();
    return scan.total;
  }

  // Slots and masks of the window's tokens, padded to whole blocks.
  __device__ __forceinline__ void emit(int32_t start, int32_t count) {
    const SparseMlaGroups& groups = c.call.groups;
    const int lane = threadIdx.x % 32;
    const int chunks = (count + kBlockTokens - 1) / kBlockTokens * 2;
    int32_t* slots = groups.slots + group * groups.limit + start;
    uint32_t* masks = groups.masks + (group * groups.limit + start) / kBlockTokens * kRows * 2;
    for (int chunk = threadIdx.x / 32; chunk < chunks; chunk += kWarps) {
      const int rank = chunk * 32 + lane;
      const int32_t token = rank < count ? order()[rank] : -1;
      slots[rank] = token < 0 ? -1 : page_of()[token >> 6] * kPageSize + (token & 63);
      uint32_t of_rows[kRows], mask = 0;
      load_rows(max(token, 0) >> 5, of_rows);
      const uint32_t bit = token < 0 ? 0 : 1u << (token & 31);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const uint32_t votes = __ballot_sync(0xffffffffu, (of_rows[r] & bit) != 0);
        if (lane == r) mask = votes;
      }
      if (lane < kRows) masks[(chunk / 2 * kRows + lane) * 2 + chunk % 2] = mask;
    }
    __syncthreads();
  }

  // What the union's size is, or a size beyond the limit.
  __device__ __forceinline__ int32_t build(int32_t num_pages) {
    const int32_t limit = c.call.groups.limit;
    int32_t size = 0;  // so far, whole blocks of earlier windows
    for (int32_t first = 0; first < num_pages && size <= limit; first += c.window_pages) {
      const int32_t start = (size + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
      mark(first);
      const int32_t count = compact(min(num_pages - first, c.window_pages), limit - start);
      size = start + count;
      if (size <= limit) emit(start, count);
    }
    return size;
  }
  __device__ __forceinline__ void run() {
    const SparseMlaGroups& groups = c.call.groups;
    const int32_t num_pages = rank_pages();
    int32_t size = 0;
    bool shared_gather = num_pages >= 0;
    if (shared_gather) {
      const int32_t total = block_scan(named, sums()).total;
      size = build(num_pages);
      // Fewer bits than entries: some row names a slot twice, which a mask cannot say.
      const bool distinct = block_scan(named - marked, sums()).total == 0;
      shared_gather =
          size <= groups.limit && distinct && int64_t{size} * 100 <= int64_t{total} * c.percent;
    }
    if (threadIdx.x != 0) return;
    if (shared_gather) {
      groups.sizes[group] = size;
      groups.group_list[atomicAdd(groups.counts, 1)] = static_cast<int32_t>(group);
    } else {
      const int64_t first = group * kRows;
      const int rows = static_cast<int>(min(int64_t{kRows}, c.call.p.num_rows - first));
      const int32_t at = atomicAdd(groups.counts + 1, rows);
      for (int r = 0; r < rows; ++r) groups.row_list[at + r] = static_cast<int32_t>(first) + r;
    }
  }
};

template <int kRows>
__global__ void __launch_bounds__(kThreads, 2)
    sparse_mla_groups_kernel(const __grid_constant__ GroupCall c) {
  Builder<kRows> builder{.c = c, .group = blockIdx.x};
  builder.run();
}

template <int kRows>
cudaError_t launch(const GroupCall& c, int64_t num_groups, cudaStream_t stream) {
  const int bytes = (c.bits_words + c.call.groups.limit + c.window_pages + kWarps + 2) * 4 +
                    (c.page_words + 1) / 2 * 16;
  const auto kernel = sparse_mla_groups_kernel<kRows>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(num_groups), kThreads, bytes, stream>>>(c);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_sparse_mla_groups(const SparseMlaCall& call,
                                     const SparseMlaPlan& plan,
                                     cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(call.groups.counts, 0, 2 * sizeof(int32_t), stream);
  if (error != cudaSuccess) return error;
  const int32_t page_words = static_cast<int32_t>(layout::ceil_div(call.p.num_pages, 32));
  const int32_t window_pages = std::min(kWindowPages, page_words * 32);
  const auto most_bits = static_cast<uint32_t>(
      std::min<int64_t>({kMostSampleBits, int64_t{call.groups.limit} * 32,
                         std::max<int64_t>(call.num_slots / kSampleStep, 32)}));
  const GroupCall c{.call = call,
                    .page_words = page_words,
                    .window_pages = window_pages,
                    .bits_words = std::max(window_pages * 2 * plan.group_rows, page_words * 8),
                    .percent = plan.group_percent,
                    .sample_mask = std::bit_floor(most_bits) - 1};
  const int64_t num_groups = layout::ceil_div(call.p.num_rows, plan.group_rows);
  switch (plan.group_rows) {
    case 8:
      return launch<8>(c, num_groups, stream);
    case 4:
      return launch<4>(c, num_groups, stream);
    case 2:
      return launch<2>(c, num_groups, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
