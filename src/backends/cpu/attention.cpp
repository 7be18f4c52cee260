// Attention of one row over a list of cached tokens. The list is cut into splits of fixed length,
// each with a softmax of its own over groups of kTokenTile tokens, and the splits are put together
// in order: bits depend on the row's own list alone, not on who computes which split.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/latent_cache.h"
#include "base/error.h"

namespace winnow::backends {

struct AttentionJob {
  int64_t num_rows = 0;
  const float* q_latent = nullptr;
  const float* q_rope = nullptr;
  int64_t num_heads = 0;
  float softmax_scale = 0;
  const ops::LatentCache* cache = nullptr;
  float* out = nullptr;
  float* lse = nullptr;
  // Sparse: the row's slots. Dense (slots null): the row's page table up to its position.
  const int32_t* slots = nullptr;
  const int32_t* lens = nullptr;
  int64_t slots_stride = 0;
  const ops::BatchRows* rows = nullptr;
};

namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// Entries of a row's list in one split.
constexpr int64_t kSplitTokens = 256;

// Walks the tokens of one split of a row.
class TokenList {
 public:
  TokenList(const AttentionJob& job, int64_t row, int64_t split)
      : job_(job), num_slots_(latent_slots(*job.cache)), next_(split * kSplitTokens) {
    if (job.slots != nullptr) {
      slots_ = job.slots + row * job.slots_stride;
    } else {
      pages_ = job.rows->page_tables + job.rows->seq_of_row[row] * job.rows->page_table_stride;
    }
    end_ = std::min(next_ + kSplitTokens, length(job, row));
  }

  static int64_t length(const AttentionJob& job, int64_t row) {
    return job.slots != nullptr ? job.lens[row] : int64_t{job.rows->positions[row]} + 1;
  }

  // The next slots, at most kTokenTile; 0 at the end. Entries outside the pool are passed over
  // wherever they stand.
  int64_t next(int32_t* group) {
    int64_t count = 0;
    const int32_t page_size = job_.cache->geometry.page_size;
    for (; next_ < end_ && count < kTokenTile; ++next_) {
      const int64_t slot = slots_ != nullptr
                               ? slots_[next_]
                               : int64_t{pages_[next_ / page_size]} * page_size + next_ % page_size;
      if (slot >= 0 && slot < num_slots_) group[count++] = static_cast<int32_t>(slot);
    }
    return count;
  }

 private:
  const AttentionJob& job_;
  const int64_t num_slots_;
  const int32_t* slots_ = nullptr;
  const int32_t* pages_ = nullptr;
  int64_t next_ = 0, end_ = 0;
};

// Heads of one work item, in whole panels of the instruction set.
struct HeadRange {
  int64_t first = 0, count = 0;
};

void clear(const SoftmaxState& state, int64_t padded_heads, int64_t num_heads, int64_t stride) {
  std::fill_n(state.maxima, padded_heads, kMinusInf);
  std::fill_n(state.sums, padded_heads, 0.0f);
  std::fill_n(state.output, num_heads * stride, 0.0f);
}

SoftmaxState at_head(const SoftmaxState& state, int64_t head, int64_t output_stride) {
  return {state.maxima + head, state.sums + head, state.output + head * output_stride};
}

// One row's attention. Sizes, and the row's queries with heads in lanes.
struct RowAttention {
  const AttentionJob& job;
  const KernelTable& kernels;
  int64_t row = 0;
  const float* q_panels = nullptr;  // [panels][C][2 lanes], then [panels][R][2 lanes]

  int64_t c() const { return job.cache->geometry.kv_lora_rank; }
  int64_t r() const { return job.cache->geometry.qk_rope_head_dim; }
  int64_t panel() const { return 2 * kernels.lanes; }
  int64_t padded_heads() const { return layout::ceil_div(job.num_heads, panel()) * panel(); }
  int64_t num_channels() const { return layout::ceil_div(c(), kChannelPad) * kChannelPad; }
  int64_t output_stride() const { return attention_output_stride(c()); }
  int64_t latent_stride() const { return layout::ceil_div(c() + r(), kChannelPad) * kChannelPad; }
  int64_t num_splits() const { return layout::ceil_div(TokenList::length(job, row), kSplitTokens); }

  void transpose_queries(float* to) {
    const int64_t first = row * job.num_heads;
    kernels.transpose_rows(job.q_latent + first * c(), c(), job.num_heads, c(), to);
    kernels.transpose_rows(job.q_rope + first * r(), r(), job.num_heads, r(),
                           to + padded_heads() * c());
    q_panels = to;
  }

  // The softmax of some heads over one split; state begins at their first head.
  void attend_split(int64_t split,
                    const HeadRange& heads,
                    ThreadScratch& scratch,
                    const SoftmaxState& state) const {
    const int64_t num_panels = layout::ceil_div(heads.count, panel());
    std::fill_n(state.maxima, num_panels * panel(), kMinusInf);
    std::fill_n(state.sums, num_panels * panel(), 0.0f);
    TokenList tokens(job, row, split);
    int32_t slots[kTokenTile], coming[kTokenTile];
    int64_t count = tokens.next(slots);
    for (int64_t j = 0; j < count; ++j) prefetch_latent(*job.cache, slots[j]);
    if (count == 0) std::fill_n(state.output, heads.count * output_stride(), 0.0f);
    for (bool is_first = true; count > 0; is_first = false) {
      for (int64_t j = 0; j < count; ++j) {
        read_latent(*job.cache, slots[j], kernels, scratch.latents.data() + j * latent_stride());
      }
      const int64_t num_coming = tokens.next(coming);
      for (int64_t j = 0; j < num_coming; ++j) prefetch_latent(*job.cache, coming[j]);
      kernels.attend_group({.q_latent = q_panels + heads.first * c(),
                            .q_rope = q_panels + padded_heads() * c() + heads.first * r(),
                            .num_heads = heads.count,
                            .num_panels = num_panels,
                            .kv_lora_rank = c(),
                            .qk_rope_head_dim = r(),
                            .softmax_scale = job.softmax_scale,
                            .latents = scratch.latents.data(),
                            .latent_stride = latent_stride(),
                            .count = count,
                            .scores = scratch.scores.data(),
                            .is_first = is_first,
                            .state = state,
                            .output_stride = output_stride(),
                            .num_channels = num_channels()});
      std::copy_n(coming, num_coming, slots);
      count = num_coming;
    }
  }

  void merge(const SoftmaxState& part, const SoftmaxState& all, int64_t num_heads) const {
    kernels.merge_states(part, all, num_heads, num_channels(), output_stride());
  }

  // The softmax over all splits becomes the result.
  void finish(const SoftmaxState& all, const HeadRange& heads) const {
    for (int64_t h = heads.first; h < heads.first + heads.count; ++h) {
      const float* from = all.output + h * output_stride();
      const int64_t row_head = row * job.num_heads + h;
      float* to = job.out + row_head * c();
      const float sum = all.sums[h];
      for (int64_t i = 0; i < c(); ++i) to[i] = sum == 0 ? 0.0f : from[i] / sum;
      if (job.lse != nullptr) {
        job.lse[row_head] = sum == 0 ? kMinusInf : all.maxima[h] + std::log(sum);
      }
    }
  }
};

}  // namespace

// Many rows: each thread computes whole rows.
void CpuBackend::attend_rows(const AttentionJob& job, int64_t work) {
  for_items(job.num_rows, work, [&](int64_t row, int thread_idx) {
    ThreadScratch& scratch = scratch_of(thread_idx);
    RowAttention attention{job, kernels_, row};
    attention.transpose_queries(scratch.q_panels.data());
    const SoftmaxState all = workspace_.state_in(scratch.attention_sum);
    const SoftmaxState part = workspace_.state_in(scratch.attention_split);
    const HeadRange heads{0, job.num_heads};
    clear(all, attention.padded_heads(), job.num_heads, attention.output_stride());
    for (int64_t split = 0; split < attention.num_splits(); ++split) {
      attention.attend_split(split, heads, scratch, part);
      attention.merge(part, all, job.num_heads);
    }
    attention.finish(all, heads);
  });
}

// Few rows: threads share the splits of each, and its heads where splits are too few.
void CpuBackend::attend_shared(const AttentionJob& job, int64_t row, int64_t work) {
  RowAttention attention{job, kernels_, row};
  attention.transpose_queries(workspace_.q_panels.data());
  const int64_t splits = attention.num_splits(), panel = attention.panel();
  const int64_t panels = attention.padded_heads() / panel;
  const int64_t wanted = layout::ceil_div(2 * pool_.num_threads(), std::max<int64_t>(splits, 1));
  const int64_t part_panels = layout::ceil_div(panels, std::min(panels, wanted));
  const int64_t parts = layout::ceil_div(panels, part_panels);
  const auto heads_of = [&](int64_t part) {
    const int64_t first = part * part_panels * panel;
    return HeadRange{first, std::min(part_panels * panel, job.num_heads - first)};
  };
  const SoftmaxState all = workspace_.state_in(workspace_.attention_sum);
  const int64_t stride = attention.output_stride();
  clear(all, attention.padded_heads(), job.num_heads, stride);
  for (int64_t first = 0; first < splits; first += kSplitsAtOnce) {
    const int64_t count = std::min(kSplitsAtOnce, splits - first);
    const auto state_of = [&](int64_t split) {
      return workspace_.state_in(workspace_.attention_splits[static_cast<size_t>(split)]);
    };
    for_items(count * parts, work, [&](int64_t item, int thread_idx) {
      const HeadRange heads = heads_of(item % parts);
      attention.attend_split(first + item / parts, heads, scratch_of(thread_idx),
                             at_head(state_of(item / parts), heads.first, stride));
    });
    for_items(panels, work / kTokenTile, [&](int64_t item, int) {
      const int64_t head = item * panel;
      for (int64_t split = 0; split < count; ++split) {
        attention.merge(at_head(state_of(split), head, stride), at_head(all, head, stride),
                        std::min(panel, job.num_heads - head));
      }
    });
  }
  attention.finish(all, {0, job.num_heads});
}

void CpuBackend::attend(const AttentionJob& job) {
  WINNOW_CHECK(workspace_.prepared, "attention before prepare()");
  const ops::ModelShape& shape = workspace_.shape;
  WINNOW_CHECK(job.num_heads <= shape.num_attention_heads &&
                   job.cache->geometry.kv_lora_rank <= shape.kv_lora_rank &&
                   job.cache->geometry.qk_rope_head_dim <= shape.qk_rope_head_dim,
               "{} heads over latents of {}", job.num_heads, job.cache->geometry.kv_lora_rank);
  const auto work_of = [&](int64_t row) {
    return TokenList::length(job, row) * job.num_heads * shape.kv_lora_rank * 2;
  };
  if (job.num_rows < 2 * pool_.num_threads()) {
    for (int64_t t = 0; t < job.num_rows; ++t) attend_shared(job, t, work_of(t));
    return;
  }
  int64_t work = 0;
  for (int64_t t = 0; t < job.num_rows; ++t) work += work_of(t);
  attend_rows(job, work);
}

void CpuBackend::sparse_mla(const ops::SparseMlaArgs& args) {
  attend({.num_rows = args.rows->num_rows,
          .q_latent = static_cast<const float*>(args.q_latent),
          .q_rope = static_cast<const float*>(args.q_rope),
          .num_heads = args.num_heads,
          .softmax_scale = args.softmax_scale,
          .cache = &args.cache,
          .out = static_cast<float*>(args.out),
          .lse = args.lse,
          .slots = args.slots,
          .lens = args.lens,
          .slots_stride = args.slots_stride});
}

void CpuBackend::dense_mla(const ops::DenseMlaArgs& args) {
  attend({.num_rows = args.rows->num_rows,
          .q_latent = static_cast<const float*>(args.q_latent),
          .q_rope = static_cast<const float*>(args.q_rope),
          .num_heads = args.num_heads,
          .softmax_scale = args.softmax_scale,
          .cache = &args.cache,
          .out = static_cast<float*>(args.out),
          .lse = args.lse,
          .rows = args.rows});
}

}  // namespace winnow::backends
