#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/linear.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

void CpuBackend::run_mlp(int64_t num_rows,
                         const float* x,
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
    LinearJob job{.num_rows = rows,
                  .x = x + first * width,
                  .x_stride = width,
                  .weight = &weights.gate,
                  .fp8_activations = fp8_activations,
                  .y = gate,
                  .y_stride = intermediate};
    run_linear(job);
    job.weight = &weights.up;
    job.y = up;
    run_linear(job);
    pool_.parallel_for(rows, [&](int64_t r, int) {
      float* g = gate + r * intermediate;
      const float* u = up + r * intermediate;
      for (int64_t i = 0; i < intermediate; ++i) g[i] = silu(g[i]) * u[i];
    });
    run_linear({.num_rows = rows,
                .x = gate,
                .x_stride = intermediate,
                .weight = &weights.down,
                .fp8_activations = fp8_activations,
                .y = out + first * weights.down.out_features,
                .y_stride = weights.down.out_features});
  }
}

void CpuBackend::mlp(const ops::MlpArgs& args) {
  run_mlp(args.num_rows, static_cast<const float*>(args.x), args.weights, args.fp8_activations,
          static_cast<float*>(args.out));
}

// Entry (row * k + pick) of every choice, grouped by expert, rows ascending inside a group.
static void group_by_expert(const int32_t* expert_ids,
                            int64_t num_entries,
                            int64_t num_experts,
                            Workspace& ws) {
  std::fill(ws.expert_begin.begin(), ws.expert_begin.end(), 0);
  for (int64_t i = 0; i < num_entries; ++i) {
    WINNOW_CHECK(expert_ids[i] >= 0 && expert_ids[i] < num_experts, "expert id {}", expert_ids[i]);
    ++ws.expert_begin[static_cast<size_t>(expert_ids[i]) + 1];
  }
  for (int64_t e = 0; e < num_experts; ++e) {
    ws.expert_begin[static_cast<size_t>(e) + 1] += ws.expert_begin[static_cast<size_t>(e)];
  }
  // Filling moves each begin to its end, which is the next one's begin: shift back afterwards.
  for (int64_t i = 0; i < num_entries; ++i) {
    const auto e = static_cast<size_t>(expert_ids[i]);
    ws.rows_by_expert[static_cast<size_t>(ws.expert_begin[e]++)] = static_cast<int32_t>(i);
  }
  for (int64_t e = num_experts; e > 0; --e) {
    ws.expert_begin[static_cast<size_t>(e)] = ws.expert_begin[static_cast<size_t>(e) - 1];
  }
  ws.expert_begin[0] = 0;
}

// Experts run in ascending order and each row meets an expert at most once, so a row's sum has one
// order whatever else is in the batch.
void CpuBackend::moe(const ops::MoeArgs& args) {
  Workspace& ws = workspace_;
  const int64_t k = args.num_experts_per_tok;
  const int64_t hidden = ws.shape.hidden_size;
  WINNOW_CHECK(args.num_experts + 1 <= static_cast<int64_t>(ws.expert_begin.size()),
               "{} experts, prepare() was told {}", args.num_experts, ws.shape.n_routed_experts);
  WINNOW_CHECK(k <= ws.shape.num_experts_per_tok, "{} experts a token", k);
  const int64_t chunk = static_cast<int64_t>(ws.gathered.size()) / hidden;
  for (int64_t first = 0; first < args.num_rows; first += chunk) {
    const int64_t rows = std::min(chunk, args.num_rows - first);
    const float* x = static_cast<const float*>(args.x) + first * hidden;
    float* out = static_cast<float*>(args.out) + first * hidden;
    group_by_expert(args.expert_ids + first * k, rows * k, args.num_experts, ws);
    if (args.shared != nullptr) {
      run_mlp(rows, x, *args.shared, args.fp8_activations, out);
    } else {
      std::fill(out, out + rows * hidden, 0.0f);
    }
    for (int64_t e = 0; e < args.num_experts; ++e) {
      const int32_t* entries = ws.rows_by_expert.data() + ws.expert_begin[static_cast<size_t>(e)];
      const int64_t count =
          ws.expert_begin[static_cast<size_t>(e) + 1] - ws.expert_begin[static_cast<size_t>(e)];
      if (count == 0) continue;
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(ws.gathered.data() + i * hidden, x + entries[i] / k * hidden,
                    static_cast<size_t>(hidden) * sizeof(float));
      }
      run_mlp(count, ws.gathered.data(), args.experts[e], args.fp8_activations,
              ws.expert_out.data());
      pool_.parallel_for(count, [&](int64_t i, int) {
        const float weight = args.expert_weights[first * k + entries[i]];
        const float* y = ws.expert_out.data() + i * hidden;
        float* sum = out + entries[i] / k * hidden;
        for (int64_t c = 0; c < hidden; ++c) sum[c] += weight * y[c];
      });
    }
  }
}

}  // namespace winnow::backends
