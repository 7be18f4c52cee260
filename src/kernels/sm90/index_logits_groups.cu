// Index logits for many rows. A block takes groups of up to 512 / heads neighbouring rows of one
// sequence and walks over the pages; one page of keys serves 512 columns of (row, head), 128 for
// each of four math warpgroups. Warpgroups 0 and 2, and 1 and 3, take turns at the tensor cores:
// one multiplies while the other sums heads. So two products are in flight at any time; left to
// themselves the four would run in step, all multiplying and then all summing.
#include <cstddef>

#include "kernels/sm90/index_logits.h"
#include "kernels/sm90/index_logits_tile.cuh"

namespace winnow::kernels::sm90 {

namespace {

constexpr int kColumns = 128;  // of one product
constexpr int kProducts = 4;   // a page: one for each math warpgroup
constexpr int kStages = 8;
constexpr int kQueryStages = 2;
constexpr int kProductBytes = kColumns * kHeadBytes;
constexpr int kMathThreads = kProducts * 128;
constexpr int kThreads = kMathThreads + 128;
constexpr int kMathRegisters = 112, kCopyRegisters = 32;
constexpr int kTurnBarrier = 1;  // + warpgroup

struct alignas(1024) Shared {
  uint8_t queries[kQueryStages][kProducts][kProductBytes];
  uint8_t keys[kStages][kKeyBytes];
  float scales[kStages][kPage];
  Mbarrier full[kStages], empty[kStages];
  Mbarrier query_full[kQueryStages], query_empty[kQueryStages];
};

template <int kHeads>
struct Worker {
  using Sum = HeadSum<kHeads, kColumns>;

  const LogitsArgs& a;
  Shared& s;
  int warpgroup;
  uint32_t page_turn = 0;

  uint32_t base = kept(smem_address(&s));
  uint32_t scales = kept(smem_address(s.scales) + 4 * Sum::key());

  __device__ uint32_t stage() const { return page_turn % kStages; }
  __device__ void wait_page() {
    mbarrier_wait(base + offsetof(Shared, full) + 8 * stage(), page_turn / kStages & 1);
  }
  __device__ void release_page() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(base + offsetof(Shared, empty) + 8 * stage());
  }
  __device__ void wait_turn() { named_barrier_sync(kTurnBarrier + warpgroup, 256); }
  // Constant barrier names: a name in a register would have to wait for a free one, that is, until
  // the accumulators are summed.
  __device__ void give_turn() {
    if (warpgroup == 0) named_barrier_arrive<kTurnBarrier + 2>(256);
    if (warpgroup == 1) named_barrier_arrive<kTurnBarrier + 3>(256);
    if (warpgroup == 2) named_barrier_arrive<kTurnBarrier>(256);
    if (warpgroup == 3) named_barrier_arrive<kTurnBarrier + 1>(256);
  }

  // takes_turns: the partner works on the same pages.
  __device__ void multiply(int64_t row,
                           int64_t end_row,
                           int32_t column,
                           int32_t count,
                           uint64_t queries,
                           bool takes_turns) {
    float weights[kColumns / 4], d[kColumns / 2], scale[Sum::kResults], results[Sum::kResults];
    Sum::load_weights(a, row, end_row, weights);
    const int64_t own = row + Sum::row();
    const RowOut out(a, min(own, end_row - 1), own < end_row && Sum::stores());
    for (; count > 0; --count, ++page_turn, column += kPage) {
      wait_page();
      if (takes_turns) wait_turn();
      wgmma_e4m3_tile(d, wgmma_descriptor(base + offsetof(Shared, keys) + stage() * kKeyBytes),
                      queries);
#pragma unroll
      for (int i = 0; i < Sum::kResults; ++i) {
        scale[i] = load_shared(scales + stage() * kScaleBytes + 32 * i);
      }
      wgmma_wait<0>();
      if (takes_turns) give_turn();
      release_page();
      wgmma_pin(d);  // behind the turn: the sums must not be moved before it
      Sum::sum(d, weights, results);
#pragma unroll
      for (int i = 0; i < Sum::kResults; ++i) out.store(column + 8 * i, results[i] * scale[i]);
    }
  }

  // No row of the group is this warpgroup's.
  __device__ void pass(int32_t count) {
    for (; count > 0; --count, ++page_turn) {
      wait_page();
      release_page();
    }
  }

  __device__ void run(const Plan& plan) {
    if (warpgroup >= 2) give_turn();  // 0 and 1 begin
    Share share(plan.page_prefix, *plan.num_groups, blockIdx.x, gridDim.x);
    Segment segment;
    for (uint32_t turn = 0; share.next(segment); ++turn) {
      const uint32_t query_stage = turn % kQueryStages;
      const int64_t end_row = plan.group_rows[segment.group + 1];
      const int64_t first_row = plan.group_rows[segment.group];
      const int64_t row = first_row + warpgroup * Sum::kRows;
      const int32_t column =
          (a.key_begin / kPage + segment.page) * kPage - a.key_begin + Sum::key();
      s.query_full[query_stage].wait(turn / kQueryStages & 1);
      if (row < end_row) {
        multiply(row, end_row, column, segment.count,
                 wgmma_descriptor(smem_address(s.queries[query_stage][warpgroup])),
                 first_row + (warpgroup | 2) * Sum::kRows < end_row);
      } else {
        pass(segment.count);
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) s.query_empty[query_stage].arrive();
    }
  }
};

template <int kHeads>
__device__ void copy_inputs(const LogitsArgs& a,
                            const Plan& plan,
                            const CUtensorMap* key_map,
                            const CUtensorMap* query_map,
                            Shared& s) {
  constexpr int kRows = kColumns / kHeads;
  Share share(plan.page_prefix, *plan.num_groups, blockIdx.x, gridDim.x);
  Segment segment;
  uint32_t page_turn = 0;
  for (uint32_t turn = 0; share.next(segment); ++turn) {
    const uint32_t stage = turn % kQueryStages;
    const int32_t row = plan.group_rows[segment.group];
    const int32_t end_row = plan.group_rows[segment.group + 1];
    if (threadIdx.x % 32 == 0) {
      s.query_empty[stage].wait((turn / kQueryStages & 1) ^ 1);
      const int32_t products = (end_row - row + kRows - 1) / kRows;
      s.query_full[stage].arrive_expect_bytes(static_cast<uint32_t>(products * kProductBytes));
      for (int32_t i = 0; i < products; ++i) {
        tensor_copy_3d(smem_address(s.queries[stage][i]), query_map, 0, 0, row + i * kRows,
                       smem_address(&s.query_full[stage].word));
      }
    }
    const int64_t seq = a.rows.seq_of_row[row];
    const int32_t* pages =
        a.rows.page_tables + seq * a.rows.page_table_stride + a.key_begin / kPage + segment.page;
    copy_pages<kStages, false>(a, key_map, pages, segment.count, s.keys[0], s.scales[0], s.full,
                               s.empty, page_turn);
  }
}

template <int kHeads>
__global__ void __launch_bounds__(kThreads, 1)
    index_logits_groups_kernel(const __grid_constant__ LogitsArgs a,
                               const __grid_constant__ Plan plan,
                               const __grid_constant__ CUtensorMap key_map,
                               const __grid_constant__ CUtensorMap query_map) {
  extern __shared__ __align__(1024) uint8_t shared_bytes[];
  Shared& s = *reinterpret_cast<Shared*>(shared_bytes);
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      s.full[i].init(1);
      s.empty[i].init(kMathThreads / 32);
    }
    for (int i = 0; i < kQueryStages; ++i) {
      s.query_full[i].init(1);
      s.query_empty[i].init(kMathThreads / 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  if (warpgroup == kProducts) {
    shrink_registers<kCopyRegisters>();
    if (threadIdx.x / 32 == kMathThreads / 32)
      copy_inputs<kHeads>(a, plan, &key_map, &query_map, s);
  } else {
    grow_registers<kMathRegisters>();
    Worker<kHeads> worker{a, s, warpgroup};
    worker.run(plan);
  }
}

template <int kHeads>
cudaError_t launch(const LogitsArgs& args,
                   const Plan& plan,
                   const CUtensorMap& keys,
                   const CUtensorMap& queries,
                   int num_sms,
                   cudaStream_t stream) {
  auto* kernel = &index_logits_groups_kernel<kHeads>;
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sizeof(Shared)));
  if (error != cudaSuccess) return error;
  return launch_overlapped(kernel,
                           {.blocks = num_sms, .threads = kThreads, .bytes = sizeof(Shared)},
                           stream, args, plan, keys, queries);
}

}  // namespace

int index_logits_group_rows(int32_t padded_heads) { return kProducts * kColumns / padded_heads; }

cudaError_t index_logits_groups(const LogitsArgs& args,
                                const Plan& plan,
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
                       .box_depth = kColumns / padded_heads},
                      &queries);
  if (error != cudaSuccess) return error;
  switch (padded_heads) {
    case 32:
      return launch<32>(args, plan, keys, queries, num_sms, stream);
    case 64:
      return launch<64>(args, plan, keys, queries, num_sms, stream);
    default:
      return launch<128>(args, plan, keys, queries, num_sms, stream);
  }
}

}  // namespace winnow::kernels::sm90
