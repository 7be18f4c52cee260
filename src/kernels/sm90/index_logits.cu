// sm90::index_logits: the plan of the rows, the choice of kernel, and the masked columns.
#include "kernels/sm90/index_logits.h"

#include "kernels/sm90/index_logits_tile.cuh"

namespace winnow::kernels::sm90 {

namespace {

constexpr int kPlanThreads = 1024;

// Exclusive prefix sum over the threads of the block; *total gets the sum.
__device__ int32_t block_prefix(int32_t value, int32_t* warp_sums, int32_t* total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int32_t other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  __syncthreads();  // warp_sums may still be read from the last call
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  const int32_t all = warp_sums[lane];
  *total = __reduce_add_sync(~0u, all);
  return __reduce_add_sync(~0u, lane < warp ? all : 0) + sum - value;
}

// One block: cuts the rows into groups, then counts their pages.
__global__ void __launch_bounds__(kPlanThreads) plan_kernel(const __grid_constant__ LogitsArgs a,
                                                            const __grid_constant__ Plan plan,
                                                            int32_t group_rows) {
  __shared__ int32_t warp_sums[kPlanThreads / 32];
  const int32_t rows = a.rows.num_rows;
  const auto starts_group = [&](int32_t row) {
    return row % group_rows == 0 || a.rows.seq_of_row[row] != a.rows.seq_of_row[row - 1];
  };
  const int32_t part = (rows + kPlanThreads - 1) / kPlanThreads;
  const int32_t begin = min(static_cast<int32_t>(threadIdx.x) * part, rows);
  const int32_t end = min(begin + part, rows);
  int32_t mine = 0, num_groups = 0;
  for (int32_t row = begin; row < end; ++row) mine += starts_group(row) ? 1 : 0;
  int32_t group = block_prefix(mine, warp_sums, &num_groups);
  for (int32_t row = begin; row < end; ++row) {
    if (starts_group(row)) plan.group_rows[group++] = row;
  }
  if (threadIdx.x == 0) {
    *plan.num_groups = num_groups;
    plan.group_rows[num_groups] = rows;
  }
  __syncthreads();
  const int32_t groups_part = (num_groups + kPlanThreads - 1) / kPlanThreads;
  const int32_t first = min(static_cast<int32_t>(threadIdx.x) * groups_part, num_groups);
  const int32_t last = min(first + groups_part, num_groups);
  int32_t pages = 0, total = 0;
  for (int32_t g = first; g < last; ++g) {
    int32_t most = 0;
    for (int32_t row = plan.group_rows[g]; row < plan.group_rows[g + 1]; ++row) {
      most = max(most, pages_of_row(a, row));
    }
    plan.page_prefix[g] = most;
    pages += most;
  }
  int32_t before = block_prefix(pages, warp_sums, &total);
  for (int32_t g = first; g < last; ++g) {
    const int32_t own = plan.page_prefix[g];
    plan.page_prefix[g] = before;
    before += own;
  }
  if (threadIdx.x == 0) plan.page_prefix[num_groups] = total;
}

constexpr int kFillThreads = 256;

// -inf where a row sees no key. Blocks take (row, stretch of columns) in turn.
__global__ void __launch_bounds__(kFillThreads)
    fill_masked_kernel(const __grid_constant__ LogitsArgs a) {
  const int64_t columns = a.key_end - a.key_begin;
  for (int64_t row = blockIdx.x; row < a.rows.num_rows; row += gridDim.x) {
    const int64_t tokens = a.rows.positions[row] + 1;
    const int64_t first = tokens > a.key_begin ? tokens - a.key_begin : 0;
    for (int64_t c = first + threadIdx.x; c < columns; c += kFillThreads) {
      a.logits[row * a.logits_stride + c] = -INFINITY;
    }
  }
}

}  // namespace

int64_t index_logits_workspace_bytes(int32_t max_rows) {
  return int64_t{4} * (2 * (int64_t{max_rows} + 1) + 1);
}

cudaError_t index_logits(const IndexLogitsParams& p, cudaStream_t stream) {
  const int32_t heads = p.index_n_heads;
  if (p.rows.num_rows == 0 || p.key_end <= p.key_begin) return cudaSuccess;
  if (p.keys.layout != layout::IndexKeyLayout::kFp8_132 || p.keys.index_head_dim != kHeadBytes ||
      p.keys.page_size != kPage || heads < 8 || heads > 128 || heads % 8 != 0 ||
      p.page_stride_bytes % 16 != 0 || p.key_end > INT32_MAX - kPage) {
    return cudaErrorNotSupported;
  }
  const LogitsArgs args{.rows = p.rows,
                        .head_weights = p.head_weights,
                        .index_n_heads = heads,
                        .keys = static_cast<const uint8_t*>(p.key_data),
                        .page_stride_bytes = p.page_stride_bytes,
                        .key_begin = static_cast<int32_t>(p.key_begin),
                        .key_end = static_cast<int32_t>(p.key_end),
                        .skip_tokens = p.skip_tokens,
                        .logits = p.logits,
                        .logits_stride = p.logits_stride};
  CUtensorMap keys;
  cudaError_t error = make_tensor_map({.data = p.key_data,
                                       .rows = kPage,
                                       .depth = p.num_pages,
                                       .row_stride = kHeadBytes,
                                       .depth_stride = p.page_stride_bytes,
                                       .box_rows = kPage,
                                       .box_depth = 1},
                                      &keys);
  if (error != cudaSuccess) return error;
  int device = 0, num_sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&num_sms, cudaDevAttrMultiProcessorCount, device);
  if (p.fill_masked) {
    fill_masked_kernel<<<4 * num_sms, kFillThreads, 0, stream>>>(args);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  const int32_t padded = heads <= 32 ? 32 : heads <= 64 ? 64 : 128;
  if (p.rows.num_rows <= kMaxSingleRows && p.rows.num_rows <= p.rows.num_seqs) {
    return index_logits_single(args, keys, p.q, padded, num_sms, stream);
  }
  if (p.workspace_bytes < index_logits_workspace_bytes(p.rows.num_rows)) {
    return cudaErrorInvalidValue;
  }
  auto* words = static_cast<int32_t*>(p.workspace);
  const Plan plan{
      .num_groups = words, .group_rows = words + 1, .page_prefix = words + 1 + p.rows.num_rows + 1};
  plan_kernel<<<1, kPlanThreads, 0, stream>>>(args, plan, index_logits_group_rows(padded));
  error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  return index_logits_groups(args, plan, keys, p.q, padded, num_sms, stream);
}

}  // namespace winnow::kernels::sm90
