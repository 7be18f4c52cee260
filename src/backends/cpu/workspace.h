// All scratch memory of the CPU backend, sized once in prepare(): ops never allocate. Ops with more
// rows than fit work through them in chunks, which changes no bits.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

#include "backends/cpu/kernels.h"
#include "layout/kv_layout.h"
#include "ops/backend.h"

namespace winnow::backends {

// Rows that one pass over a weight serves at most.
inline constexpr int64_t kRowChunk = 512;
// Splits of one row's attention that are computed before they are put together.
inline constexpr int64_t kSplitsAtOnce = 16;

// Floats between heads of an attention output: padded, and no power of two, whose heads would
// contend for the same few places in the cache.
inline int64_t attention_output_stride(int64_t kv_lora_rank) {
  return layout::ceil_div(kv_lora_rank, kChannelPad) * kChannelPad + kMaxLanes;
}

// Vectors begin on a cache line, or every other load would touch two.
template <typename T>
struct LineAligned {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  LineAligned() = default;
  template <typename U>
  LineAligned(const LineAligned<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* data, size_t) { ::operator delete(data, kLine); }
  bool operator==(const LineAligned&) const { return true; }
};
using Floats = std::vector<float, LineAligned<float>>;

struct ThreadScratch {
  Floats linear;      // [kLinearScratch]
  Floats latents;     // [kTokenTile, C + R padded], or index keys [kTokenTile, D]
  Floats scores;      // [kTokenTile, heads padded]
  Floats key_scales;  // [kTokenTile]
  // Attention by whole rows:
  Floats q_panels;         // [H padded, C + R] a row's queries by transpose_rows
  Floats attention_sum;    // a SoftmaxState: of the splits so far
  Floats attention_split;  // of one split
};

struct Workspace {
  ops::ModelShape shape;
  bool prepared = false;
  Floats packed;                         // activations of one linear (PackRows)
  Floats hidden;                         // [2, rows, I] of a feed-forward block
  Floats expert_out;                     // [kRowChunk, hidden_size]
  Floats router_scores;                  // [kRowChunk, E]
  Floats index_queries;                  // [rows, Hi padded, D] by transpose_rows
  Floats q_panels;                       // as in ThreadScratch, of a row that threads share
  Floats attention_sum;                  // ..
  std::vector<Floats> attention_splits;  // [kSplitsAtOnce] SoftmaxStates
  Floats index_logits;                   // at most index_logits_budget_bytes
  std::vector<int32_t> rows_by_expert;   // [kRowChunk, k]
  std::vector<int32_t> expert_begin;     // [E + 1]
  std::vector<int32_t> logits_rows;      // [max_rows] rows that need index logits
  std::vector<int32_t> row_groups;       // [max_rows + 1] runs of rows of one sequence
  std::vector<ThreadScratch> threads;

  // The softmax that lies in such a buffer.
  SoftmaxState state_in(Floats& buffer) const;
  // Throws Error when the shape cannot be served.
  void size_for(const ops::ModelShape& shape, int num_threads);
};

}  // namespace winnow::backends
