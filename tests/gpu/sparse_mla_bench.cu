// Rates of sparse MLA.
#include <algorithm>
#include <cstring>

#include "gpu/sparse_mla_cases.h"

namespace winnow::gpu_check {
namespace {

using namespace mla;

void time_case(const Case& c, Context& context, bool invariant = false) {
  const std::string name = "sparse_mla " + describe(c) + (invariant ? " invariant" : "");
  if (!context.wants(name)) return;
  Data d = make_data(c, 5, false);
  const SparseMlaPlan plan = make_plan(c, invariant);
  DeviceArray<uint8_t> workspace(plan.workspace_bytes);
  const auto call = [&](cudaStream_t stream) { run(d.params, plan, workspace.get(), stream); };
  const float us = median_us_cold(call);
  const float union_us = plan.group_rows == 0 ? 0 : median_us_cold([&](cudaStream_t stream) {
    CUDA_OK(static_cast<cudaError_t>(
        kernels::sm90::sparse_mla_groups(d.params, plan, workspace.get(), stream)));
  });
  int32_t groups = 0;
  if (plan.group_rows > 0) CUDA_OK(cudaMemcpy(&groups, workspace.get(), 4, cudaMemcpyDeviceToHost));
  const float graph_us =
      c.rows < 1024 ? us_in_graph([&](cudaStream_t stream, int) { call(stream); }) : 0;
  const double flops = 2.0 * c.rows * c.heads * c.topk * (kC + kR + kC);
  const layout::LatentGeometry geometry{c.layout, kC, kR, kPage};
  const double per_token = geometry.bytes_per_token();
  const double gathered = 1.0 * c.rows * c.topk * per_token;
  const double slots = std::min<double>(c.tokens, 1.0 * c.rows * c.topk);
  char note[160];
  std::snprintf(note, sizeof note, "%.2f TB/s gathered, %d splits%s", gathered / us * 1e-6,
                plan.num_splits, invariant ? ", batch-invariant" : "");
  if (plan.group_rows > 0) {
    std::snprintf(note + std::strlen(note), sizeof note - std::strlen(note),
                  ", %d groups share, found in %.1f us", groups, union_us);
  }
  context.record(name, {.us = us,
                        .graph_us = graph_us,
                        .flops = flops,
                        .bytes = slots * per_token + c.rows * (c.heads * 2176.0 + 4.0 * c.topk),
                        .e4m3 = c.layout == LatentLayout::kFp8_576,
                        .note = note});
}

}  // namespace

void bench_sparse_mla(Context& context) {
  const LatentLayout fp8[] = {LatentLayout::kFp8_576, LatentLayout::kFp8_644,
                              LatentLayout::kFp8_656};
  const auto many = [&](LatentLayout layout, int heads, int64_t tokens) {
    time_case({.layout = layout, .rows = 4096, .heads = heads, .topk = 2048, .tokens = tokens},
              context);
  };
  for (int64_t tokens : {8192, 32768, 131072}) {
    for (int heads : {64, 128}) many(LatentLayout::kBf16_1152, heads, tokens);
    for (LatentLayout layout : fp8) many(layout, 8, tokens);
  }
  for (int heads : {16, 32, 64, 128}) {
    for (LatentLayout layout : fp8) many(layout, heads, 32768);
  }
  for (LatentLayout layout : fp8) many(layout, 128, 131072);
  for (int64_t tokens : {8192, 32768, 131072}) {
    time_case({.layout = fp8[0],
               .rows = 4096,
               .heads = 128,
               .topk = 2048,
               .tokens = tokens,
               .fp8_query = true},
              context);
  }
  // 4,096 rows, 8 heads: what a shared gather gives by overlap, the union's time counted.
  for (LatentLayout layout : {LatentLayout::kBf16_1152, fp8[0], fp8[1], fp8[2]}) {
    for (float overlap : {0.0f, 0.5f, 0.75f, 0.9f, 1.0f}) {
      time_case({.layout = layout,
                 .rows = 4096,
                 .heads = 8,
                 .topk = 2048,
                 .tokens = 32768,
                 .group = 8,
                 .overlap = overlap},
                context);
    }
  }
  for (int heads : {16, 32}) {
    time_case({.layout = LatentLayout::kFp8_656,
               .rows = 4096,
               .heads = heads,
               .topk = 2048,
               .tokens = 32768,
               .group = 64 / heads,
               .overlap = 0.9f},
              context);
  }
  for (int heads : {8, 64, 128}) {
    for (int rows : {1, 16, 64, 128}) {
      const Case c{.layout = LatentLayout::kFp8_656,
                   .rows = rows,
                   .heads = heads,
                   .topk = 2048,
                   .tokens = 262144};
      time_case(c, context);
      if (rows != 1) time_case(c, context, true);
      if (heads != 8) continue;
      Case of_644 = c;
      of_644.layout = LatentLayout::kFp8_644;
      time_case(of_644, context);
    }
  }
}

}  // namespace winnow::gpu_check
