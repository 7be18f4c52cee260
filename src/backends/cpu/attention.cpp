// Attention of one row over a list of cached tokens. The softmax runs over groups of kTokenTile
// tokens in order, so its bits depend on the row's own list alone.
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

// Walks the tokens a row attends to.
class TokenList {
 public:
  TokenList(const AttentionJob& job, int64_t row)
      : job_(job), num_slots_(latent_slots(*job.cache)) {
    if (job.slots != nullptr) {
      slots_ = job.slots + row * job.slots_stride;
      end_ = job.lens[row];
    } else {
      pages_ = job.rows->page_tables + job.rows->seq_of_row[row] * job.rows->page_table_stride;
      end_ = int64_t{job.rows->positions[row]} + 1;
    }
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

  int64_t length() const { return end_; }

 private:
  const AttentionJob& job_;
  const int64_t num_slots_;
  const int32_t* slots_ = nullptr;
  const int32_t* pages_ = nullptr;
  int64_t next_ = 0, end_ = 0;
};

void attend_heads(const AttentionJob& job,
                  int64_t row,
                  int64_t first_head,
                  int64_t num_heads,
                  const KernelTable& kernels,
                  ThreadScratch& scratch) {
  const int64_t c = job.cache->geometry.kv_lora_rank, r = job.cache->geometry.qk_rope_head_dim;
  const int64_t row_head = row * job.num_heads + first_head;
  const int64_t output_stride = layout::ceil_div(c, kChannelPad) * kChannelPad;
  const int64_t latent_stride = layout::ceil_div(c + r, kChannelPad) * kChannelPad;
  float* output = scratch.output.data();
  float* maxima = scratch.softmax.data();
  float* sums = maxima + num_heads;
  std::fill_n(maxima, num_heads, kMinusInf);
  std::fill_n(sums, num_heads, 0.0f);
  std::fill_n(output, num_heads * output_stride, 0.0f);
  TokenList tokens(job, row);
  int32_t slots[kTokenTile];
  while (const int64_t count = tokens.next(slots)) {
    for (int64_t j = 0; j < count; ++j) {
      read_latent(*job.cache, slots[j], kernels, scratch.latents.data() + j * latent_stride);
    }
    kernels.transpose_tile(scratch.latents.data(), latent_stride, count, c + r,
                           scratch.transposed.data());
    kernels.attend_group({.q_latent = job.q_latent + row_head * c,
                          .q_rope = job.q_rope + row_head * r,
                          .num_heads = num_heads,
                          .kv_lora_rank = c,
                          .qk_rope_head_dim = r,
                          .softmax_scale = job.softmax_scale,
                          .latents = scratch.latents.data(),
                          .latent_stride = latent_stride,
                          .transposed = scratch.transposed.data(),
                          .count = count,
                          .scores = scratch.scores.data(),
                          .maxima = maxima,
                          .sums = sums,
                          .output = output,
                          .output_stride = output_stride});
  }
  for (int64_t h = 0; h < num_heads; ++h) {
    const float* from = output + h * output_stride;
    float* to = job.out + (row_head + h) * c;
    for (int64_t i = 0; i < c; ++i) to[i] = sums[h] == 0 ? 0.0f : from[i] / sums[h];
    if (job.lse != nullptr) {
      job.lse[row_head + h] = sums[h] == 0 ? kMinusInf : maxima[h] + std::log(sums[h]);
    }
  }
}

}  // namespace

// Few rows share their heads among the threads; each thread then unpacks the latents for itself.
void CpuBackend::attend(const AttentionJob& job) {
  WINNOW_CHECK(workspace_.prepared, "attention before prepare()");
  const ops::ModelShape& shape = workspace_.shape;
  WINNOW_CHECK(job.num_heads <= shape.num_attention_heads &&
                   job.cache->geometry.kv_lora_rank <= shape.kv_lora_rank &&
                   job.cache->geometry.qk_rope_head_dim <= shape.qk_rope_head_dim,
               "{} heads over latents of {}", job.num_heads, job.cache->geometry.kv_lora_rank);
  const int64_t parts = job.num_rows < 2 * pool_.num_threads()
                            ? std::min<int64_t>(pool_.num_threads(), job.num_heads)
                            : 1;
  const int64_t part_heads = layout::ceil_div(job.num_heads, parts);
  int64_t tokens = 0;
  for (int64_t t = 0; t < job.num_rows; ++t) tokens += TokenList(job, t).length();
  for_items(job.num_rows * parts, tokens * job.num_heads * shape.kv_lora_rank * 2,
            [&](int64_t item, int thread_idx) {
              const int64_t first = item % parts * part_heads;
              const int64_t heads = std::min(part_heads, job.num_heads - first);
              if (heads <= 0) return;
              attend_heads(job, item / parts, first, heads, kernels_, scratch_of(thread_idx));
            });
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
