// Plan and launch of sparse MLA: which kernel, how many splits, how large a grid, which rows share.
#include "kernels/sm90/sparse_mla.cuh"

#include <algorithm>

namespace winnow::kernels::sm90 {
namespace {

using layout::LatentLayout;

constexpr int kStageTokens = 64;
constexpr int kMaxSplits = 128;
// Where even this many splits of an item leave multiprocessors idle, tiles are made smaller.
constexpr int kSmallTileSplits = 32;
// From this many splits on it is quicker not to have two blocks of the f16 kernel side by side.
constexpr int kLoneSplits = 4;
// With --batch-invariant every batch is cut as one of this many rows would be.
constexpr int kInvariantRows = 16;
// Below this many rows there are not enough groups for all multiprocessors.
constexpr int kManyRows = 1024;
// Pieces of a tail row, and entries of a row from which on cutting it gains more than a second and
// a third launch cost.
constexpr int kMostTailSplits = 16;
constexpr int kFewestTailTokens = 1024;

int64_t lse_bytes(int64_t rows, int64_t heads, int64_t splits) {
  return (rows * heads * splits * 4 + 255) / 256 * 256;
}

// Where a plan's groups lie in the workspace.
struct GroupParts {
  int64_t group_list, row_list, sizes, slots, masks, bytes;
};
GroupParts group_parts(const SparseMlaPlan& plan, int64_t num_rows) {
  const auto align = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  const int64_t groups = layout::ceil_div(num_rows, plan.group_rows);
  GroupParts parts{};
  parts.group_list = 256;
  parts.row_list = parts.group_list + align(groups * 4);
  parts.sizes = parts.row_list + align(num_rows * 4);
  parts.slots = parts.sizes + align(groups * 4);
  parts.masks = parts.slots + align(groups * plan.group_limit * 4);
  parts.bytes = parts.masks + align(groups * plan.group_limit / kStageTokens * plan.group_rows * 8);
  return parts;
}
SparseMlaGroups group_view(const SparseMlaPlan& plan, int64_t num_rows, void* workspace) {
  const GroupParts parts = group_parts(plan, num_rows);
  const auto at = [&](int64_t offset) {
    return reinterpret_cast<int32_t*>(static_cast<uint8_t*>(workspace) + offset);
  };
  return {.rows = plan.group_rows,
          .limit = plan.group_limit,
          .counts = at(0),
          .group_list = at(parts.group_list),
          .row_list = at(parts.row_list),
          .sizes = at(parts.sizes),
          .slots = at(parts.slots),
          .masks = reinterpret_cast<uint32_t*>(at(parts.masks))};
}

// As the kernels' launch bounds have it. Tiles of 8 heads come twice: four blocks of one stage
// where there are many rows, two blocks of two stages where rows are split.
int blocks_of_a_multiprocessor(const SparseMlaPlan& plan, int64_t items, int multiprocessors) {
  if (plan.kernel == SparseMlaKernel::kF16) return plan.head_tile <= 16 ? 2 : 1;
  if (plan.kernel != SparseMlaKernel::kFp8) return 1;
  if (plan.head_tile == 16) return 3;
  return items >= int64_t{4} * multiprocessors ? 4 : 2;
}

// The most pieces worth having: enough items for every unit that can run, none below a stage.
int choose_splits(const SparseMlaPlan& plan,
                  int64_t items,
                  int num_multiprocessors,
                  int32_t max_tokens) {
  const int64_t places = int64_t{num_multiprocessors} * plan.blocks;
  items = std::max<int64_t>(items, 1);
  int64_t wanted = std::max<int64_t>(1, places / items);
  if (plan.kernel == SparseMlaKernel::kF16 && wanted > kLoneSplits)
    wanted = std::max<int64_t>(kLoneSplits, num_multiprocessors / items);
  const int64_t most = std::max<int64_t>(1, max_tokens / kStageTokens);
  return static_cast<int>(std::min({wanted, most, int64_t{kMaxSplits}}));
}

bool has_kernel(LatentLayout layout) {
  return layout == LatentLayout::kBf16_1152 || layout == LatentLayout::kFp8_656 ||
         layout == LatentLayout::kFp8_644 || layout == LatentLayout::kFp8_576;
}
// Up to this many heads the kernel without widening is the quicker one.
int most_narrow_heads(LatentLayout layout, int64_t rows) {
  return layout == LatentLayout::kFp8_644 && rows >= kManyRows ? 16 : 8;
}

// Slots that a group may have for 100 entries of its rows: where going through the union once takes
// as long as every row alone. From the measured rates (docs/kernels.md).
int sharing_percent(LatentLayout layout, int group_rows) {
  if (layout == LatentLayout::kBf16_1152) return 75;  // what there is room for
  const int of_layout = layout == LatentLayout::kFp8_576   ? 0
                        : layout == LatentLayout::kFp8_644 ? 1
                                                           : 2;
  constexpr int kOfEight[] = {39, 36, 39}, kOfFour[] = {48, 41, 50}, kOfTwo[] = {68, 69, 71};
  return (group_rows == 8 ? kOfEight : group_rows == 4 ? kOfFour : kOfTwo)[of_layout];
}

void plan_groups(
    SparseMlaPlan& plan, int num_rows, int num_heads, int max_tokens, int num_multiprocessors) {
  const int rows = num_heads <= 8 ? 8 : num_heads <= 16 ? 4 : num_heads <= 32 ? 2 : 0;
  if (rows == 0 || num_rows < kManyRows || max_tokens < 1 || max_tokens > kMostGroupEntries / rows)
    return;
  plan.group_rows = rows;
  plan.group_percent = sharing_percent(plan.layout, rows);
  plan.group_limit = static_cast<int32_t>(
      layout::ceil_div(int64_t{rows} * max_tokens * plan.group_percent, 100 * kStageTokens) *
      kStageTokens);
  const auto groups = static_cast<int32_t>(layout::ceil_div(num_rows, rows));
  plan.group_grid = std::min(groups, num_multiprocessors);
  plan.workspace_bytes = group_parts(plan, num_rows).bytes;
}

// Which kernel is the quickest, as measured (docs/kernels.md), and its tile of heads: of few rows
// smaller ones, that all multiprocessors have work.
void choose_kernel(
    SparseMlaPlan& plan, int64_t rows, int num_heads, int num_multiprocessors, bool fp8_query) {
  const auto items = [&](int tile) { return rows * layout::ceil_div(num_heads, tile); };
  const auto idle = [&](int tile) { return items(tile) * kSmallTileSplits < num_multiprocessors; };
  plan.head_tile = 64;
  if (plan.layout == LatentLayout::kBf16_1152) {
    plan.kernel = SparseMlaKernel::kWide;
    return;
  }
  plan.fp8_query = fp8_query && plan.layout == LatentLayout::kFp8_576 && num_heads > 32;
  if (num_heads <= 16 && (num_heads <= most_narrow_heads(plan.layout, rows) || idle(8))) {
    plan.kernel = SparseMlaKernel::kFp8;
    plan.head_tile = num_heads <= 8 || idle(8) ? 8 : 16;
    return;
  }
  plan.kernel = SparseMlaKernel::kF16;
  if (plan.fp8_query) return;
  if (num_heads <= 16 || idle(32)) {
    plan.head_tile = 16;
  } else if (num_heads <= 32 || items(32) <= num_multiprocessors) {
    plan.head_tile = 32;
  }
}

int64_t partial_bytes(int64_t rows, int64_t heads, int64_t splits) {
  return lse_bytes(rows, heads, splits) + rows * heads * splits * kLatentDim * 4;
}

// 4,096 rows on 132 places are 31 rounds and 4 rows: those would take as long as a round.
void plan_tail(SparseMlaPlan& plan, int num_rows, int num_heads, int max_tokens, int64_t places) {
  const int64_t head_tiles = layout::ceil_div(num_heads, plan.head_tile);
  const int64_t items = num_rows * head_tiles;
  if (items <= places || max_tokens < kFewestTailTokens) return;
  const int64_t rows = layout::ceil_div(items % places, head_tiles);
  const int64_t splits = std::min<int64_t>({places / std::max<int64_t>(rows * head_tiles, 1),
                                            kMostTailSplits, max_tokens / kStageTokens});
  if (rows == 0 || splits < 2) return;
  plan.tail_rows = static_cast<int32_t>(rows);
  plan.tail_tokens_per_split = static_cast<int32_t>(
      layout::ceil_div(layout::ceil_div(max_tokens, splits), kStageTokens) * kStageTokens);
  plan.tail_splits = static_cast<int32_t>(layout::ceil_div(max_tokens, plan.tail_tokens_per_split));
  plan.workspace_bytes = partial_bytes(rows, num_heads, plan.tail_splits);
}

// The rows from `first` on.
SparseMlaParams rows_from(SparseMlaParams params, int64_t first) {
  const auto skip = [&](const void* from, int64_t bytes) {
    return static_cast<const uint8_t*>(from) + first * bytes;
  };
  const int64_t heads = params.num_heads;
  params.q_latent = skip(params.q_latent, heads * kLatentDim * 2);
  params.q_rope = skip(params.q_rope, heads * kRopeDim * 2);
  params.slots += first * params.slots_stride;
  params.lens += first;
  params.out = static_cast<uint8_t*>(params.out) + first * heads * kLatentDim * 2;
  if (params.lse != nullptr) params.lse += first * heads;
  params.num_rows -= static_cast<int32_t>(first);
  return params;
}

// Larger pools than the union's bit maps have room for take every row alone.
bool groups_rows(const SparseMlaParams& params, const SparseMlaPlan& plan) {
  return plan.group_rows > 0 && params.num_pages <= kMostGroupPages;
}

// One way for all rows.
int run_rows(const SparseMlaParams& params,
             const SparseMlaPlan& plan,
             void* workspace,
             Stream stream) {
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
  call.num_slots =
      static_cast<int32_t>(std::min<int64_t>(int64_t{params.num_pages} * kPageSize, INT32_MAX));
  call.num_items = int64_t{params.num_rows} * plan.num_splits *
                   layout::ceil_div(params.num_heads, plan.head_tile);
  if (plan.layout != LatentLayout::kFp8_576) call.p.cache_scale = 1.0f;
  if (split) {
    call.partial_lse = static_cast<float*>(workspace);
    call.partial_out =
        reinterpret_cast<float*>(static_cast<uint8_t*>(workspace) +
                                 lse_bytes(params.num_rows, params.num_heads, plan.num_splits));
  }
  cudaError_t error = cudaSuccess;
  if (groups_rows(params, plan)) {
    if (workspace == nullptr) return cudaErrorInvalidValue;
    call.groups = group_view(plan, params.num_rows, workspace);
    call.list = call.groups.group_list;
    call.list_count = call.groups.counts;
    call.head_tiles = 1;
    error =
        plan.layout == LatentLayout::kBf16_1152
            ? launch_sparse_mla_wide(call, true, plan.group_grid, stream)
            : launch_sparse_mla_f16(call, plan.layout, {64, true, false}, plan.group_grid, stream);
    if (error != cudaSuccess) return error;
    call.list = call.groups.row_list;
    call.list_count = call.groups.counts + 1;
  }
  call.head_tiles = static_cast<int32_t>(layout::ceil_div(params.num_heads, plan.head_tile));
  switch (plan.kernel) {
    case SparseMlaKernel::kWide:
      error = launch_sparse_mla_wide(call, false, plan.grid, stream);
      break;
    case SparseMlaKernel::kF16:
      error = launch_sparse_mla_f16(call, plan.layout, {plan.head_tile, false, plan.fp8_query},
                                    plan.grid, stream);
      break;
    case SparseMlaKernel::kFp8:
      error = launch_sparse_mla_fp8(call, plan, stream);
      break;
    default:
      error = cudaErrorInvalidValue;
  }
  if (error == cudaSuccess && split) error = launch_sparse_mla_combine(call, stream);
  return error;
}

}  // namespace

SparseMlaPlan plan_sparse_mla(LatentLayout layout,
                              int32_t num_rows,
                              int32_t num_heads,
                              int32_t max_tokens,
                              int32_t num_multiprocessors,
                              bool batch_invariant,
                              bool fp8_query) {
  SparseMlaPlan plan;
  plan.layout = layout;
  if (!has_kernel(layout)) return plan;
  const int64_t rows_of_plan = batch_invariant ? kInvariantRows : num_rows;
  choose_kernel(plan, rows_of_plan, num_heads, num_multiprocessors, fp8_query);
  const int64_t head_tiles = layout::ceil_div(num_heads, plan.head_tile);
  const int64_t items = rows_of_plan * head_tiles;
  plan.blocks = blocks_of_a_multiprocessor(plan, items, num_multiprocessors);
  const int64_t places = int64_t{num_multiprocessors} * plan.blocks;
  plan.num_splits = choose_splits(plan, items, num_multiprocessors, max_tokens);
  plan.tokens_per_split = static_cast<int32_t>(
      layout::ceil_div(layout::ceil_div(std::max(max_tokens, 1), plan.num_splits), kStageTokens) *
      kStageTokens);
  plan.num_splits = static_cast<int32_t>(
      std::max<int64_t>(1, layout::ceil_div(max_tokens, plan.tokens_per_split)));
  const int64_t all = std::max<int64_t>(1, num_rows * head_tiles * plan.num_splits);
  plan.grid = static_cast<int32_t>(std::min<int64_t>(places, all));
  if (plan.num_splits > 1) {
    plan.workspace_bytes = partial_bytes(num_rows, num_heads, plan.num_splits);
  } else if (!batch_invariant) {
    plan_groups(plan, num_rows, num_heads, max_tokens, num_multiprocessors);
    if (plan.group_rows == 0) plan_tail(plan, num_rows, num_heads, max_tokens, places);
  }
  return plan;
}

int sparse_mla_groups(const SparseMlaParams& params,
                      const SparseMlaPlan& plan,
                      void* workspace,
                      Stream stream) {
  if (params.num_rows == 0 || !groups_rows(params, plan)) return cudaSuccess;
  if (workspace == nullptr || plan.group_rows * params.slots_stride > kMostGroupEntries) {
    return cudaErrorInvalidValue;
  }
  SparseMlaCall call{};
  call.p = params;
  call.num_slots = params.num_pages * kPageSize;
  call.groups = group_view(plan, params.num_rows, workspace);
  return launch_sparse_mla_groups(call, plan, stream);
}

int sparse_mla(const SparseMlaParams& params,
               const SparseMlaPlan& plan,
               void* workspace,
               Stream stream) {
  if (params.num_rows == 0) return cudaSuccess;
  if (plan.tail_rows == 0) return run_rows(params, plan, workspace, stream);
  const int32_t first = params.num_rows - plan.tail_rows;
  if (first < 0) return cudaErrorInvalidValue;
  SparseMlaParams whole = params;
  whole.num_rows = first;
  const int error = run_rows(whole, plan, nullptr, stream);
  if (error != cudaSuccess) return error;
  SparseMlaPlan tail = plan;
  tail.num_splits = plan.tail_splits;
  tail.tokens_per_split = plan.tail_tokens_per_split;
  return run_rows(rows_from(params, first), tail, workspace, stream);
}

}  // namespace winnow::kernels::sm90
