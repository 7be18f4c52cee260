// Index logits for few rows, each of its own sequence: bound by reading the keys once. The pages of
// all rows form one line that is cut into equal shares, one a block; two math warpgroups take turns
// at the pages of a deep ring of copies.
#include "kernels/sm90/index_logits.h"
#include "kernels/sm90/index_logits_tile.cuh"

namespace winnow::kernels::sm90 {

namespace {

constexpr int kStages = 16;
constexpr int kQueryStages = 2;
constexpr int kMathThreads = 256;
constexpr int kThreads = kMathThreads + 32;
constexpr int kRowsPerThread = kMaxSingleRows / kMathThreads;

template <int kHeads>
struct alignas(1024) Shared {
  uint8_t queries[kQueryStages][kHeads * kHeadBytes];
  uint8_t keys[kStages][kKeyBytes];
  float scales[kStages][kPage];
  Mbarrier full[kStages], empty[kStages];
  Mbarrier query_full[kQueryStages], query_empty[kQueryStages];
  int32_t warp_pages[kMathThreads / 32];
  int32_t seqs[kMaxSingleRows];
  int32_t page_prefix[kMaxSingleRows + 1];
};

// seqs and page_prefix of all rows; ends with a barrier of the block.
__device__ inline void count_pages(const LogitsArgs& a,
                                   int32_t* seqs,
                                   int32_t* warp_pages,
                                   int32_t* prefix) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t pages[kRowsPerThread], mine = 0, sum = 0;
  if (threadIdx.x < kMathThreads) {
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      const int32_t row = static_cast<int32_t>(threadIdx.x) * kRowsPerThread + i;
      if (row < a.rows.num_rows) seqs[row] = a.rows.seq_of_row[row];
      pages[i] = row < a.rows.num_rows ? pages_of_row(a, row) : 0;
      mine += pages[i];
    }
    sum = mine;
    for (int step = 1; step < 32; step *= 2) {
      const int32_t other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) warp_pages[warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x < kMathThreads) {
    int32_t before = sum - mine;
    for (int w = 0; w < warp; ++w) before += warp_pages[w];
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      prefix[threadIdx.x * kRowsPerThread + i] = before;
      before += pages[i];
    }
    if (threadIdx.x == kMathThreads - 1) prefix[kMaxSingleRows] = before;
  }
  __syncthreads();
}

template <int kHeads>
__device__ void copy_inputs(const LogitsArgs& a,
                            const CUtensorMap* key_map,
                            const CUtensorMap* query_map,
                            Shared<kHeads>& s) {
  Share share(s.page_prefix, a.rows.num_rows, blockIdx.x, gridDim.x);
  Segment segment;
  uint32_t page_turn = 0;
  for (uint32_t turn = 0; share.next(segment); ++turn) {
    const uint32_t stage = turn % kQueryStages;
    const int64_t seq = s.seqs[segment.group];
    if (threadIdx.x % 32 == 0) {
      s.query_empty[stage].wait((turn / kQueryStages & 1) ^ 1);
      s.query_full[stage].arrive_expect_bytes(kHeads * kHeadBytes);
      tensor_copy_3d(smem_address(s.queries[stage]), query_map, 0, 0, segment.group,
                     smem_address(&s.query_full[stage].word));
    }
    const int32_t* pages =
        a.rows.page_tables + seq * a.rows.page_table_stride + a.key_begin / kPage + segment.page;
    copy_pages<kStages, true>(a, key_map, pages, segment.count, s.keys[0], s.scales[0], s.full,
                              s.empty, page_turn);
  }
}

template <int kHeads>
__device__ void multiply_pages(const LogitsArgs& a, Shared<kHeads>& s) {
  using Sum = HeadSum<kHeads, kHeads>;
  const uint32_t warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  Share share(s.page_prefix, a.rows.num_rows, blockIdx.x, gridDim.x);
  Segment segment;
  uint32_t page_turn = 0;
  float weights[kHeads / 4], d[kHeads / 2], result[1];
  for (uint32_t turn = 0; share.next(segment); ++turn) {
    const uint32_t query_stage = turn % kQueryStages;
    Sum::load_weights(a, segment.group, segment.group + 1, weights);
    const RowOut out(a, segment.group, Sum::stores());
    const int32_t column = (a.key_begin / kPage + segment.page) * kPage - a.key_begin + Sum::key();
    const uint64_t queries = wgmma_descriptor(smem_address(s.queries[query_stage]));
    s.query_full[query_stage].wait(turn / kQueryStages & 1);
    for (int32_t i = 0; i < segment.count; ++i, ++page_turn) {
      if (page_turn % 2 != warpgroup) continue;
      const uint32_t stage = page_turn % kStages;
      s.full[stage].wait(page_turn / kStages & 1);
      wgmma_e4m3_tile(d, wgmma_descriptor(smem_address(s.keys[stage])), queries);
      const float scale = s.scales[stage][Sum::key()];
      wgmma_wait<0>();
      wgmma_pin(d);
      __syncwarp();
      if (threadIdx.x % 32 == 0) s.empty[stage].arrive();
      Sum::sum(d, weights, result);
      out.store(column + i * kPage, result[0] * scale);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) s.query_empty[query_stage].arrive();
  }
}

template <int kHeads>
__global__ void __launch_bounds__(kThreads, 1)
    index_logits_single_kernel(const __grid_constant__ LogitsArgs a,
                               const __grid_constant__ CUtensorMap key_map,
                               const __grid_constant__ CUtensorMap query_map) {
  extern __shared__ __align__(1024) uint8_t shared_bytes[];
  auto& s = *reinterpret_cast<Shared<kHeads>*>(shared_bytes);
  if (threadIdx.x == kMathThreads) {
    prefetch_tensor_map(&key_map);
    prefetch_tensor_map(&query_map);
    for (int i = 0; i < kStages; ++i) {
      s.full[i].init(1);
      s.empty[i].init(4);
    }
    for (int i = 0; i < kQueryStages; ++i) {
      s.query_full[i].init(1);
      s.query_empty[i].init(8);
    }
    fence_mbarrier_init();
  }
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  count_pages(a, s.seqs, s.warp_pages, s.page_prefix);
  if (threadIdx.x >= kMathThreads) {
    copy_inputs<kHeads>(a, &key_map, &query_map, s);
  } else {
    multiply_pages<kHeads>(a, s);
  }
}

template <int kHeads>
cudaError_t launch(const LogitsArgs& args,
                   const CUtensorMap& keys,
                   const CUtensorMap& queries,
                   int num_sms,
                   cudaStream_t stream) {
  auto* kernel = &index_logits_single_kernel<kHeads>;
  const int bytes = static_cast<int>(sizeof(Shared<kHeads>));
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  return launch_overlapped(
      kernel, {.blocks = num_sms, .threads = kThreads, .bytes = static_cast<size_t>(bytes)}, stream,
      args, keys, queries);
}

}  // namespace

cudaError_t index_logits_single(const LogitsArgs& args,
                                const CUtensorMap& keys,
                                const void* q,
                                int32_t padded_heads,
                                int num_sms,
                                cudaStream_t stream) {
  CUtensorMap queries;
  const cudaError_t error =
      make_tensor_map({.data = q,
                       .rows = args.index_n_heads,
                       .depth = args.rows.num_rows,
                       .row_stride = kHeadBytes,
                       .depth_stride = int64_t{kHeadBytes} * args.index_n_heads,
                       .box_rows = padded_heads,
                       .box_depth = 1},
                      &queries);
  if (error != cudaSuccess) return error;
  switch (padded_heads) {
    case 32:
      return launch<32>(args, keys, queries, num_sms, stream);
    case 64:
      return launch<64>(args, keys, queries, num_sms, stream);
    default:
      return launch<128>(args, keys, queries, num_sms, stream);
  }
}

}  // namespace winnow::kernels::sm90
