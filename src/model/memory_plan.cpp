#include "model/memory_plan.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace winnow::model {

namespace {

int64_t stored_element_bytes(const WeightSlot& slot, DType dtype, bool reference_precision) {
  if (slot.kind == WeightKind::kVector) return bytes_of(DType::kF32);
  if (slot.kind == WeightKind::kKvB && dtype == DType::kE4m3) {
    return bytes_of(reference_precision ? DType::kF32 : DType::kBf16);
  }
  return bytes_of(dtype);
}

}  // namespace

std::optional<SplitRange> split_range(int64_t extent,
                                      int32_t rank,
                                      int32_t num_ranks,
                                      bool block_scaled) {
  WINNOW_CHECK(0 <= rank && rank < num_ranks, "rank {} of {}", rank, num_ranks);
  const int64_t size = extent / num_ranks;
  if (size * num_ranks != extent) return std::nullopt;
  SplitRange range{.begin = rank * size, .size = size, .scale_begin = 0, .scale_size = 0};
  if (block_scaled) {
    if (num_ranks > 1 && size % layout::kScaleGroup != 0) return std::nullopt;
    range.scale_begin = range.begin / layout::kScaleGroup;
    range.scale_size = layout::ceil_div(size, layout::kScaleGroup);
  }
  return range;
}

int64_t planned_weight_bytes(const std::vector<WeightSlot>& slots,
                             const Checkpoint& checkpoint,
                             int32_t num_ranks,
                             bool reference_precision) {
  int64_t total = 0;
  for (const WeightSlot& slot : slots) {
    const DType dtype = *checkpoint.find(slot.name)->entry->dtype;
    // kv_b is multiplied out before it is split, so only whole heads matter there.
    const bool block_scaled = dtype == DType::kE4m3 && slot.kind != WeightKind::kKvB;
    int64_t rows = slot.rows, cols = std::max<int64_t>(slot.cols, 1);
    if (slot.split != WeightSplit::kNone) {
      int64_t& extent = slot.split == WeightSplit::kCols ? cols : rows;
      const int64_t unit = slot.split_unit;
      const auto range = split_range(extent / unit, 0, num_ranks, false);
      const auto blocks = range ? split_range(extent, 0, num_ranks, block_scaled) : std::nullopt;
      if (!blocks) {
        throw_error("tensor {} {} cannot be split over {} ranks{}", slot.name,
                    format_shape(slot.shape()), num_ranks,
                    range ? ": the parts would not be whole 128-wide scale blocks" : "");
      }
      extent = blocks->size;
    }
    total += rows * cols * stored_element_bytes(slot, dtype, reference_precision);
    if (block_scaled) {
      total += 4 * layout::ceil_div(rows, layout::kScaleGroup) *
               layout::ceil_div(cols, layout::kScaleGroup);
    }
  }
  return total;
}

MemoryPlan plan_memory(int64_t memory_bytes, int64_t weight_bytes, const kv::CachePlan& cache) {
  MemoryPlan plan;
  plan.weight_bytes = weight_bytes;
  // Slots are int32: page * page_size + offset must not leave them.
  const int64_t max_pages = std::numeric_limits<int32_t>::max() / cache.latent.page_size;
  const int64_t page_bytes = cache.bytes_per_page();
  plan.num_pages = std::clamp<int64_t>((memory_bytes - weight_bytes) / page_bytes, 0, max_pages);
  plan.cache_bytes = plan.num_pages * page_bytes;
  plan.num_tokens = plan.num_pages * cache.latent.page_size;
  return plan;
}

}  // namespace winnow::model
