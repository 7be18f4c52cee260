#include "backends/cpu/workspace.h"

#include <algorithm>

#include "base/error.h"

namespace winnow::backends {

namespace {

void check_shape(const ops::ModelShape& s) {
  const auto positive = [](const char* name, int64_t value) {
    if (value <= 0) throw_error("cpu backend: {} is {}, must be at least 1", name, value);
  };
  positive("hidden_size", s.hidden_size);
  positive("vocab_size", s.vocab_size);
  positive("num_attention_heads", s.num_attention_heads);
  positive("kv_lora_rank", s.kv_lora_rank);
  positive("qk_rope_head_dim", s.qk_rope_head_dim);
  positive("max_rows", s.max_rows);
  positive("max_context", s.max_context);
  if (s.page_size < 1 || s.page_size > 64) {
    throw_error("cpu backend: page size {} asked, 1 to 64 offered", s.page_size);
  }
  if (s.num_attention_heads > 128) {
    throw_error("cpu backend: {} attention heads asked, 1 to 128 offered", s.num_attention_heads);
  }
  if (s.qk_rope_head_dim % 2 != 0) {
    throw_error("cpu backend: qk_rope_head_dim {} is odd", s.qk_rope_head_dim);
  }
  if (s.index_n_heads > 0) {
    positive("index_head_dim", s.index_head_dim);
    positive("index_topk", s.index_topk);
    const int64_t row_bytes = int64_t{4} * s.max_context;
    if (s.max_context > s.index_topk && s.index_logits_budget_bytes < row_bytes) {
      throw_error("cpu backend: index_logits_budget_bytes is {}, one row of {} tokens needs {}",
                  s.index_logits_budget_bytes, s.max_context, row_bytes);
    }
  }
}

// The widest input of a linear that the model is known to have.
int64_t widest_input(const ops::ModelShape& s) {
  return std::max({int64_t{2} * s.hidden_size, int64_t{s.q_lora_rank}, int64_t{s.kv_lora_rank},
                   int64_t{s.num_attention_heads} * s.v_head_dim, int64_t{s.intermediate_size},
                   int64_t{s.moe_intermediate_size}});
}

}  // namespace

void Workspace::size_for(const ops::ModelShape& s, int num_threads) {
  check_shape(s);
  shape = s;
  const int64_t rows = std::min<int64_t>(kRowChunk, s.max_rows);
  const int64_t in = widest_input(s);
  const int64_t intermediate = std::max(s.intermediate_size, s.moe_intermediate_size);
  const int64_t latent = int64_t{s.kv_lora_rank} + s.qk_rope_head_dim;
  const int64_t heads = s.num_attention_heads;
  // A feed-forward block wider than the shape says (several shared experts in one) still fits:
  // its rows are done in smaller chunks.
  const int64_t min_rows = std::max<int64_t>(rows, 16);
  x_codes.assign(static_cast<size_t>(min_rows * in), 0.0f);
  x_scales.assign(static_cast<size_t>(min_rows * layout::ceil_div(in, layout::kScaleGroup)), 0.0f);
  hidden.assign(static_cast<size_t>(2 * min_rows * intermediate), 0.0f);
  if (s.n_routed_experts > 0) {
    gathered.assign(static_cast<size_t>(rows * s.hidden_size), 0.0f);
    expert_out.assign(static_cast<size_t>(rows * s.hidden_size), 0.0f);
    router_scores.assign(static_cast<size_t>(rows * s.n_routed_experts), 0.0f);
    rows_by_expert.assign(static_cast<size_t>(2 * rows * s.num_experts_per_tok), 0);
    expert_begin.assign(static_cast<size_t>(s.n_routed_experts) + 1, 0);
  }
  if (s.index_n_heads > 0) {
    index_queries.assign(static_cast<size_t>(rows * s.index_n_heads * s.index_head_dim), 0.0f);
    const int64_t most = int64_t{4} * s.max_rows * s.max_context;
    index_logits.resize(static_cast<size_t>(std::min(most, s.index_logits_budget_bytes) / 4));
    logits_rows.assign(static_cast<size_t>(s.max_rows), 0);
  }
  threads.assign(static_cast<size_t>(num_threads), ThreadScratch{});
  for (ThreadScratch& t : threads) {
    t.linear.assign(static_cast<size_t>(2 * in), 0.0f);
    t.latents.assign(static_cast<size_t>(kTokenGroup * latent), 0.0f);
    t.query.assign(static_cast<size_t>(heads * latent), 0.0f);
    t.scores.assign(static_cast<size_t>(heads * kTokenGroup), 0.0f);
    t.softmax.assign(static_cast<size_t>(2 * heads), 0.0f);
    t.output.assign(static_cast<size_t>(heads * s.kv_lora_rank), 0.0f);
    t.keys.assign(static_cast<size_t>(kKeyTile * std::max(1, s.index_head_dim)), 0.0f);
    t.slots.assign(static_cast<size_t>(kTokenGroup), 0);
  }
  prepared = true;
}

}  // namespace winnow::backends
