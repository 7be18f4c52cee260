// Plan and launch of sparse MLA: which kernel, how many splits, how large a grid.
#include "kernels/sm90/sparse_mla.cuh"

#include <algorithm>

namespace winnow::kernels::sm90 {
namespace {

using layout::LatentLayout;

constexpr int kStageTokens = 64;
constexpr int kMaxSplits = 128;
// Where even this many splits of an item leave multiprocessors idle, tiles are made smaller.
constexpr int kSmallTileSplits = 32;
// With --batch-invariant every batch is cut as one of this many rows would be.
constexpr int kInvariantRows = 16;

int64_t lse_bytes(int64_t rows, int64_t heads, int64_t splits) {
  return (rows * heads * splits * 4 + 255) / 256 * 256;
}

// As the kernels' launch bounds have it. Tiles of 8 heads come twice: four blocks of one stage
// where there are many rows, two blocks of two stages where rows are split.
int blocks_of_a_multiprocessor(const SparseMlaPlan& plan, int64_t items, int multiprocessors) {
  if (plan.kernel == SparseMlaKernel::kWide || plan.head_tile == 64) return 1;
  if (plan.head_tile == 8) return items >= int64_t{4} * multiprocessors ? 4 : 2;
  if (plan.head_tile == 16) return 3;
  return plan.layout == LatentLayout::kFp8_576 ? 2 : 1;
}

// The most pieces worth having: enough items for every unit that can run, none below a stage.
int choose_splits(int64_t items, int64_t places, int32_t max_tokens) {
  const int64_t wanted = items >= places ? 1 : places / std::max<int64_t>(items, 1);
  const int64_t most = std::max<int64_t>(1, max_tokens / kStageTokens);
  return static_cast<int>(std::clamp<int64_t>(wanted, 1, std::min<int64_t>(most, kMaxSplits)));
}

}  // namespace

SparseMlaPlan plan_sparse_mla(LatentLayout layout,
                              int32_t num_rows,
                              int32_t num_heads,
                              int32_t max_tokens,
                              int32_t num_multiprocessors,
                              bool batch_invariant) {
  SparseMlaPlan plan;
  plan.layout = layout;
  const bool fp8 = layout == LatentLayout::kFp8_656 || layout == LatentLayout::kFp8_644 ||
                   layout == LatentLayout::kFp8_576;
  if (!fp8 && layout != LatentLayout::kBf16_1152) return plan;
  plan.kernel = fp8 ? SparseMlaKernel::kFp8 : SparseMlaKernel::kWide;
  plan.head_tile = !fp8 || num_heads > 32 ? 64 : num_heads <= 8 ? 8 : num_heads <= 16 ? 16 : 32;
  // Few rows: more and smaller tiles, that all multiprocessors have work.
  const int64_t large_items = num_rows * layout::ceil_div(num_heads, plan.head_tile);
  if (fp8 && plan.head_tile > 16 && !batch_invariant &&
      large_items * kSmallTileSplits <= num_multiprocessors) {
    plan.head_tile = 16;
  }
  const int64_t head_tiles = layout::ceil_div(num_heads, plan.head_tile);
  const int64_t items = (batch_invariant ? kInvariantRows : num_rows) * head_tiles;
  plan.blocks = blocks_of_a_multiprocessor(plan, items, num_multiprocessors);
  const int64_t places = int64_t{num_multiprocessors} * plan.blocks;
  plan.num_splits = choose_splits(items, places, max_tokens);
  plan.tokens_per_split = static_cast<int32_t>(
      layout::ceil_div(layout::ceil_div(std::max(max_tokens, 1), plan.num_splits), kStageTokens) *
      kStageTokens);
  plan.num_splits = static_cast<int32_t>(
      std::max<int64_t>(1, layout::ceil_div(max_tokens, plan.tokens_per_split)));
  const int64_t all = std::max<int64_t>(1, num_rows * head_tiles * plan.num_splits);
  plan.grid = static_cast<int32_t>(std::min<int64_t>(places, all));
  if (plan.num_splits > 1) {
    plan.workspace_bytes = lse_bytes(num_rows, num_heads, plan.num_splits) +
                           int64_t{num_rows} * num_heads * plan.num_splits * kLatentDim * 4;
  }
  return plan;
}

int sparse_mla(const SparseMlaParams& params,
               const SparseMlaPlan& plan,
               void* workspace,
               Stream stream) {
  if (params.num_rows == 0) return cudaSuccess;
  const bool split = plan.num_splits > 1;
  if (split && workspace == nullptr) return cudaErrorInvalidValue;
  if (!split && plan.tokens_per_split < params.slots_stride) return cudaErrorInvalidValue;
  // Gathers count the cache in units of 16 bytes with 32 bits: 64 GiB a layer.
  if (params.page_stride_bytes % 16 != 0 ||
      params.page_stride_bytes / 16 * params.num_pages > int64_t{UINT32_MAX}) {
    return cudaErrorInvalidValue;
  }
  SparseMlaCall call{};
  call.p = params;
  call.num_splits = plan.num_splits;
  call.tokens_per_split = plan.tokens_per_split;
  call.head_tiles = static_cast<int32_t>(layout::ceil_div(params.num_heads, plan.head_tile));
  call.num_slots =
      static_cast<int32_t>(std::min<int64_t>(int64_t{params.num_pages} * kPageSize, INT32_MAX));
  call.num_items = int64_t{params.num_rows} * plan.num_splits * call.head_tiles;
  if (plan.layout != LatentLayout::kFp8_576) call.p.cache_scale = 1.0f;
  if (split) {
    call.partial_lse = static_cast<float*>(workspace);
    call.partial_out =
        reinterpret_cast<float*>(static_cast<uint8_t*>(workspace) +
                                 lse_bytes(params.num_rows, params.num_heads, plan.num_splits));
  }
  cudaError_t error = cudaErrorInvalidValue;
  if (plan.kernel == SparseMlaKernel::kWide) error = launch_sparse_mla_wide(call, plan, stream);
  if (plan.kernel == SparseMlaKernel::kFp8) error = launch_sparse_mla_fp8(call, plan, stream);
  if (error == cudaSuccess && split) error = launch_sparse_mla_combine(call, stream);
  return error;
}

}  // namespace winnow::kernels::sm90
