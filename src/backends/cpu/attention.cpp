#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/latent_cache.h"
#include "backends/cpu/linear.h"
#include "backends/cpu/rotary.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// A part of a weight whose rows belong to one head.
ops::LinearWeight rows_of_head(const ops::LinearWeight& weight, int64_t head, int64_t rows) {
  WINNOW_CHECK(weight.dtype != DType::kE4m3, "absorbed weights are f32, bf16 or f16");
  ops::LinearWeight part = weight;
  part.data = static_cast<const uint8_t*>(weight.data) +
              head * rows * weight.in_features * bytes_of(weight.dtype);
  part.out_features = rows;
  return part;
}

}  // namespace

// One row's attention over a list of slots. next_slots fills up to kTokenGroup valid slots and
// returns how many; 0 at the end.
struct MlaJob {
  const float* q_latent = nullptr;
  const float* q_rope = nullptr;
  int32_t num_heads = 0;
  float softmax_scale = 0;
  const ops::LatentCache* cache = nullptr;
  float* out = nullptr;
  float* lse = nullptr;
};

namespace {

// Softmax over groups of kTokenGroup tokens in order, rescaled between groups.
class RowAttention {
 public:
  RowAttention(const MlaJob& job, int64_t row, ThreadScratch& scratch)
      : job_(job),
        scratch_(scratch),
        c_(job.cache->geometry.kv_lora_rank),
        r_(job.cache->geometry.qk_rope_head_dim),
        row_(row) {
    for (int64_t h = 0; h < job.num_heads; ++h) {
      float* q = scratch.query.data() + h * (c_ + r_);
      const float* latent = job.q_latent + (row * job.num_heads + h) * c_;
      const float* rope = job.q_rope + (row * job.num_heads + h) * r_;
      std::copy(latent, latent + c_, q);
      std::copy(rope, rope + r_, q + c_);
      max_of(h) = kMinusInf;
      sum_of(h) = 0;
      std::fill_n(scratch.output.data() + h * c_, c_, 0.0f);
    }
  }

  void add_group(const int32_t* slots, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      read_latent(*job_.cache, slots[j], scratch_.latents.data() + j * (c_ + r_));
    }
    for (int64_t h = 0; h < job_.num_heads; ++h) add_head(h, count);
  }

  void finish() {
    for (int64_t h = 0; h < job_.num_heads; ++h) {
      const float* from = scratch_.output.data() + h * c_;
      float* to = job_.out + (row_ * job_.num_heads + h) * c_;
      const float sum = sum_of(h);
      for (int64_t i = 0; i < c_; ++i) to[i] = sum == 0 ? 0.0f : from[i] / sum;
      if (job_.lse != nullptr) {
        job_.lse[row_ * job_.num_heads + h] = sum == 0 ? kMinusInf : max_of(h) + std::log(sum);
      }
    }
  }

 private:
  void add_head(int64_t h, int64_t count) {
    const float* q = scratch_.query.data() + h * (c_ + r_);
    float scores[kTokenGroup];
    float largest = max_of(h);
    for (int64_t j = 0; j < count; ++j) {
      scores[j] = dot(q, scratch_.latents.data() + j * (c_ + r_), c_ + r_) * job_.softmax_scale;
      // A NaN score must reach the output, not be skipped as if its token were masked.
      largest = std::isnan(scores[j]) ? scores[j] : std::max(largest, scores[j]);
    }
    // Every score so far is -inf: their weights are 0, and (-inf) - (-inf) must not be formed.
    if (largest == kMinusInf) return;
    float* out = scratch_.output.data() + h * c_;
    const float rescale = std::exp(max_of(h) - largest);
    sum_of(h) *= rescale;
    for (int64_t i = 0; i < c_; ++i) out[i] *= rescale;
    for (int64_t j = 0; j < count; ++j) {
      const float p = std::exp(scores[j] - largest);
      const float* v = scratch_.latents.data() + j * (c_ + r_);
      sum_of(h) += p;
      for (int64_t i = 0; i < c_; ++i) out[i] += p * v[i];
    }
    max_of(h) = largest;
  }

  float& max_of(int64_t h) { return scratch_.softmax[static_cast<size_t>(2 * h)]; }
  float& sum_of(int64_t h) { return scratch_.softmax[static_cast<size_t>(2 * h + 1)]; }

  const MlaJob& job_;
  ThreadScratch& scratch_;
  int64_t c_, r_, row_;
};

}  // namespace

void CpuBackend::sparse_mla(const ops::SparseMlaArgs& args) {
  const MlaJob job{.q_latent = static_cast<const float*>(args.q_latent),
                   .q_rope = static_cast<const float*>(args.q_rope),
                   .num_heads = args.num_heads,
                   .softmax_scale = args.softmax_scale,
                   .cache = &args.cache,
                   .out = static_cast<float*>(args.out),
                   .lse = args.lse};
  const int64_t num_slots = latent_slots(args.cache);
  WINNOW_CHECK(args.num_heads <= workspace_.shape.num_attention_heads, "{} heads", args.num_heads);
  pool_.parallel_for(args.rows->num_rows, [&](int64_t t, int thread_idx) {
    ThreadScratch& scratch = workspace_.threads[static_cast<size_t>(thread_idx)];
    RowAttention attention(job, t, scratch);
    const int32_t* slots = args.slots + t * args.slots_stride;
    int64_t count = 0;
    for (int64_t i = 0; i < args.lens[t]; ++i) {
      if (slots[i] < 0 || slots[i] >= num_slots) continue;
      scratch.slots[static_cast<size_t>(count++)] = slots[i];
      if (count < kTokenGroup) continue;
      attention.add_group(scratch.slots.data(), count);
      count = 0;
    }
    if (count > 0) attention.add_group(scratch.slots.data(), count);
    attention.finish();
  });
}

void CpuBackend::dense_mla(const ops::DenseMlaArgs& args) {
  const MlaJob job{.q_latent = static_cast<const float*>(args.q_latent),
                   .q_rope = static_cast<const float*>(args.q_rope),
                   .num_heads = args.num_heads,
                   .softmax_scale = args.softmax_scale,
                   .cache = &args.cache,
                   .out = static_cast<float*>(args.out),
                   .lse = args.lse};
  const ops::BatchRows& rows = *args.rows;
  const int32_t page_size = args.cache.geometry.page_size;
  WINNOW_CHECK(args.num_heads <= workspace_.shape.num_attention_heads, "{} heads", args.num_heads);
  pool_.parallel_for(rows.num_rows, [&](int64_t t, int thread_idx) {
    ThreadScratch& scratch = workspace_.threads[static_cast<size_t>(thread_idx)];
    RowAttention attention(job, t, scratch);
    const int32_t* pages = rows.page_tables + rows.seq_of_row[t] * rows.page_table_stride;
    const int64_t length = int64_t{rows.positions[t]} + 1;
    for (int64_t first = 0; first < length; first += kTokenGroup) {
      const int64_t count = std::min(kTokenGroup, length - first);
      for (int64_t i = 0; i < count; ++i) {
        const auto position = static_cast<int32_t>(first + i);
        scratch.slots[static_cast<size_t>(i)] =
            pages[position / page_size] * page_size + position % page_size;
      }
      attention.add_group(scratch.slots.data(), count);
    }
    attention.finish();
  });
}

void CpuBackend::absorb_query(const ops::AbsorbQueryArgs& args) {
  const int64_t heads = args.num_heads, nope = args.qk_nope_head_dim, rope_dim = args.rope.dim;
  const int64_t latent = args.w_uk.out_features / heads;
  const int64_t width = nope + rope_dim;
  WINNOW_CHECK(args.w_uk.in_features == nope && latent * heads == args.w_uk.out_features,
               "w_uk is {} x {}, {} heads of {}", args.w_uk.out_features, args.w_uk.in_features,
               heads, nope);
  const auto* q = static_cast<const float*>(args.q);
  auto* q_latent = static_cast<float*>(args.q_latent);
  auto* q_rope = static_cast<float*>(args.q_rope);
  for (int64_t h = 0; h < heads; ++h) {
    const ops::LinearWeight part = rows_of_head(args.w_uk, h, latent);
    run_linear({.num_rows = args.rows->num_rows,
                .x = q + h * width,
                .x_stride = heads * width,
                .weight = &part,
                .y = q_latent + h * latent,
                .y_stride = heads * latent});
  }
  pool_.parallel_for(args.rows->num_rows, [&](int64_t t, int) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* from = q + (t * heads + h) * width + nope;
      float* to = q_rope + (t * heads + h) * rope_dim;
      std::copy(from, from + rope_dim, to);
      rotate_interleaved(to, args.rope, args.rows->positions[t]);
    }
  });
}

void CpuBackend::up_project(const ops::UpProjectArgs& args) {
  const int64_t heads = args.num_heads, latent = args.w_uv.in_features;
  const int64_t v_dim = args.w_uv.out_features / heads;
  WINNOW_CHECK(v_dim * heads == args.w_uv.out_features, "w_uv has {} rows, {} heads",
               args.w_uv.out_features, heads);
  for (int64_t h = 0; h < heads; ++h) {
    const ops::LinearWeight part = rows_of_head(args.w_uv, h, v_dim);
    run_linear({.num_rows = args.num_rows,
                .x = static_cast<const float*>(args.latent) + h * latent,
                .x_stride = heads * latent,
                .weight = &part,
                .y = static_cast<float*>(args.out) + h * v_dim,
                .y_stride = heads * v_dim});
  }
}

}  // namespace winnow::backends
