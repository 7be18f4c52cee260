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

// Whole panels of the widest instruction set.
int64_t padded_heads(int64_t heads) {
  return layout::ceil_div(heads, 2 * kMaxLanes) * 2 * kMaxLanes;
}

template <typename Array>
void resize(Array& buffer, int64_t count) {
  buffer.assign(static_cast<size_t>(count), {});
}

}  // namespace

SoftmaxState Workspace::state_in(Floats& buffer) const {
  const int64_t heads = padded_heads(shape.num_attention_heads);
  return {buffer.data(), buffer.data() + heads, buffer.data() + 2 * heads};
}

void Workspace::size_for(const ops::ModelShape& s, int num_threads) {
  check_shape(s);
  shape = s;
  const int64_t rows = std::min<int64_t>(kRowChunk, s.max_rows);
  // Few rows of an input wider than the shape tells (several shared experts in one) still fit.
  const int64_t min_rows = std::max<int64_t>(rows, 16);
  const int64_t in = layout::ceil_div(widest_input(s), kColumnBlock) * kColumnBlock;
  resize(packed, min_rows * in);
  resize(hidden, 2 * min_rows * std::max(s.intermediate_size, s.moe_intermediate_size));
  if (s.n_routed_experts > 0) {
    resize(expert_out, rows * s.hidden_size);
    resize(router_scores, rows * s.n_routed_experts);
    resize(rows_by_expert, rows * s.num_experts_per_tok);
    resize(expert_begin, int64_t{s.n_routed_experts} + 1);
  }
  if (s.index_n_heads > 0) {
    resize(index_queries, rows * padded_heads(s.index_n_heads) * s.index_head_dim);
    const int64_t most = int64_t{4} * s.max_rows * s.max_context;
    resize(index_logits, std::min(most, s.index_logits_budget_bytes) / 4);
    resize(logits_rows, s.max_rows);
    resize(row_groups, int64_t{s.max_rows} + 1);
  }
  const int64_t width = int64_t{s.kv_lora_rank} + s.qk_rope_head_dim;
  const int64_t tile_width =
      std::max<int64_t>(layout::ceil_div(width, kChannelPad) * kChannelPad, s.index_head_dim);
  const int64_t heads = padded_heads(s.num_attention_heads);
  const int64_t state = heads * (2 + attention_output_stride(s.kv_lora_rank));
  resize(q_panels, heads * width);
  resize(attention_sum, state);
  attention_splits.assign(static_cast<size_t>(kSplitsAtOnce), Floats(static_cast<size_t>(state)));
  threads.assign(static_cast<size_t>(num_threads), ThreadScratch{});
  for (ThreadScratch& t : threads) {
    resize(t.linear, kLinearScratch);
    resize(t.latents, kTokenTile * tile_width);
    resize(t.scores, std::max(heads, padded_heads(s.index_n_heads)) * kTokenTile);
    resize(t.key_scales, kTokenTile);
    resize(t.q_panels, heads * width);
    resize(t.attention_sum, state);
    resize(t.attention_split, state);
  }
  prepared = true;
}

}  // namespace winnow::backends
