#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/linear.h"
#include "base/error.h"

namespace winnow::backends {

void CpuBackend::run_mlp(int64_t num_rows,
                         const float* x,
                         const int32_t* entries,
                         int64_t entries_per_row,
                         const ops::MlpWeights& weights,
                         bool fp8_activations,
                         float* out) {
  const int64_t width = weights.gate.in_features, intermediate = weights.gate.out_features;
  const int64_t chunk =
      std::min(static_cast<int64_t>(workspace_.hidden.size()) / (2 * intermediate), kRowChunk);
  WINNOW_CHECK(chunk > 0, "feed-forward block of width {}", intermediate);
  for (int64_t first = 0; first < num_rows; first += chunk) {
    const int64_t rows = std::min(chunk, num_rows - first);
    float* gate = workspace_.hidden.data();
    float* up = gate + rows * intermediate;
    run_linear({.num_rows = rows,
                .x = entries == nullptr ? x + first * width : x,
                .x_stride = width,
                .entries = entries == nullptr ? nullptr : entries + first,
                .entries_per_row = entries_per_row,
                .weights = {&weights.gate, &weights.up},
                .y = {gate, up},
                .y_stride = intermediate,
                .fp8_activations = fp8_activations});
    for_items(rows, rows * intermediate * 8, [&](int64_t r, int) {
      kernels_.silu_mul(gate + r * intermediate, up + r * intermediate, intermediate);
    });
    run_linear({.num_rows = rows,
                .x = gate,
                .x_stride = intermediate,
                .weights = {&weights.down},
                .y = {out + first * weights.down.out_features},
                .y_stride = weights.down.out_features,
                .fp8_activations = fp8_activations});
  }
}

void CpuBackend::mlp(const ops::MlpArgs& args) {
  run_mlp(args.num_rows, static_cast<const float*>(args.x), nullptr, 1, args.weights,
          args.fp8_activations, static_cast<float*>(args.out));
}

// Entry (row * k + pick) of every choice, grouped by expert, rows ascending inside a group.
static void group_by_expert(const int32_t* expert_ids,
                            int64_t num_entries,
                            int64_t num_experts,
                            Workspace& ws) {
  int32_t* begin = ws.expert_begin.data();
  std::fill(begin, begin + num_experts + 1, 0);
  for (int64_t i = 0; i < num_entries; ++i) {
    WINNOW_CHECK(expert_ids[i] >= 0 && expert_ids[i] < num_experts, "expert id {}", expert_ids[i]);
    ++begin[expert_ids[i] + 1];
  }
  for (int64_t e = 0; e < num_experts; ++e) begin[e + 1] += begin[e];
  // Filling moves each begin to its end, which is the next one's begin: shift back afterwards.
  for (int64_t i = 0; i < num_entries; ++i) {
    ws.rows_by_expert[static_cast<size_t>(begin[expert_ids[i]]++)] = static_cast<int32_t>(i);
  }
  for (int64_t e = num_experts; e > 0; --e) begin[e] = begin[e - 1];
  begin[0] = 0;
}

// Experts run in ascending order and each row meets an expert at most once, so a row's sum has one
// order whatever else is in the batch: shared first, then its experts ascending.
void CpuBackend::moe(const ops::MoeArgs& args) {
  Workspace& ws = workspace_;
  const int64_t k = args.num_experts_per_tok;
  const int64_t hidden = ws.shape.hidden_size;
  WINNOW_CHECK(args.num_experts + 1 <= static_cast<int64_t>(ws.expert_begin.size()),
               "{} experts, prepare() was told {}", args.num_experts, ws.shape.n_routed_experts);
  WINNOW_CHECK(k <= ws.shape.num_experts_per_tok, "{} experts a token", k);
  const int64_t chunk = static_cast<int64_t>(ws.expert_out.size()) / hidden;
  for (int64_t first = 0; first < args.num_rows; first += chunk) {
    const int64_t rows = std::min(chunk, args.num_rows - first);
    const float* x = static_cast<const float*>(args.x) + first * hidden;
    float* out = static_cast<float*>(args.out) + first * hidden;
    group_by_expert(args.expert_ids + first * k, rows * k, args.num_experts, ws);
    if (args.shared != nullptr) {
      run_mlp(rows, x, nullptr, 1, *args.shared, args.fp8_activations, out);
    } else {
      std::fill(out, out + rows * hidden, 0.0f);
    }
    for (int64_t e = 0; e < args.num_experts; ++e) {
      const int64_t begin = ws.expert_begin[static_cast<size_t>(e)];
      const int64_t count = ws.expert_begin[static_cast<size_t>(e) + 1] - begin;
      if (count == 0) continue;
      const int32_t* entries = ws.rows_by_expert.data() + begin;
      run_mlp(count, x, entries, k, args.experts[e], args.fp8_activations, ws.expert_out.data());
      for_items(count, count * hidden, [&](int64_t i, int) {
        kernels_.add_scaled(out + entries[i] / k * hidden, ws.expert_out.data() + i * hidden,
                            args.expert_weights[first * k + entries[i]], hidden);
      });
    }
  }
}

}  // namespace winnow::backends
