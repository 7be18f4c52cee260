// Sparse MLA against a plain double-precision kernel over the same bytes.
#include <algorithm>
#include <cmath>

#include "gpu/sparse_mla_cases.h"

namespace winnow::gpu_check {

void bench_sparse_mla(Context& context);

namespace {

using namespace mla;

__global__ void count_differences_kernel(const uint4* a,
                                         const uint4* b,
                                         int64_t count,
                                         unsigned* differences) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint4 x = a[i], y = b[i];
    if (x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w) atomicAdd(differences, 1u);
  }
}

// The same bits in the first `count` outputs?
bool same_bits(const Data& d, const DeviceArray<__nv_bfloat16>& first, size_t count) {
  DeviceArray<unsigned> differences(std::vector<unsigned>{0});
  count_differences_kernel<<<512, 256>>>(reinterpret_cast<const uint4*>(d.out.get()),
                                         reinterpret_cast<const uint4*>(first.get()),
                                         static_cast<int64_t>(count / 8), differences.get());
  CUDA_OK(cudaGetLastError());
  return differences.download()[0] == 0;
}

struct Accuracy {
  double relative = 0;
  double worst_row = 0, worst_lse = 0;  // over what the case allows
  bool sane = true;
};

// got and want_lse of rows row_step apart.
Accuracy compare(const Case& c,
                 const std::vector<__nv_bfloat16>& got,
                 const std::vector<float>& lse,
                 const std::vector<double>& want,
                 const std::vector<double>& want_lse,
                 const std::vector<double>& reach) {
  // The e4m3 tensor cores keep about 13 bits in each of 18 additions; 16-bit products are summed in
  // fp32.
  const double logit_bits = c.layout == LatentLayout::kBf16_1152 ? 0x1p-20 : 0x1p-11;
  Accuracy a;
  double error = 0, norm = 0;
  for (size_t i = 0; i < lse.size(); ++i) {
    if (i / c.heads % c.row_step != 0) continue;
    double row_error = 0, row_norm = 0;
    for (int k = 0; k < kC; ++k) {
      const double x = __bfloat162float(got[i * kC + k]), y = want[i * kC + k];
      row_error += (x - y) * (x - y);
      row_norm += y * y;
      a.sane = a.sane && std::isfinite(x);
    }
    error += row_error;
    norm += row_norm;
    const double logit_error = 1e-3 + reach[i] * logit_bits;
    if (row_norm > 0) {
      a.worst_row = std::max(a.worst_row, std::sqrt(row_error / row_norm) / (6e-3 + logit_error));
    }
    if (row_norm == 0) a.sane = a.sane && row_error == 0;
    if (std::isinf(want_lse[i])) {
      a.sane = a.sane && std::isinf(lse[i]) && lse[i] < 0;
    } else {
      a.worst_lse = std::max(a.worst_lse, std::fabs(lse[i] - want_lse[i]) / logit_error);
    }
  }
  a.relative = norm > 0 ? std::sqrt(error / norm) : 0;
  return a;
}

// least_groups: so many groups must share their gather.
void check_case(
    Context& context, const Case& c, bool invariant, uint64_t seed, int least_groups = 0) {
  Data d = make_data(c, seed, true);
  const size_t values = d.out.size();
  const Reference reference = make_reference(c, d);
  const SparseMlaPlan plan = make_plan(c, invariant);
  DeviceArray<uint8_t> workspace(plan.workspace_bytes);
  run(d.params, plan, workspace.get(), nullptr);
  CUDA_OK(cudaDeviceSynchronize());
  int32_t groups = 0;
  if (plan.group_rows > 0) CUDA_OK(cudaMemcpy(&groups, workspace.get(), 4, cudaMemcpyDeviceToHost));
  groups = std::max(groups, 0);  // -1: the pool is too large for groups, nothing was written
  const Accuracy a = compare(c, d.out.download(), d.lse.download(), reference.out.download(),
                             reference.lse.download(), reference.reach.download());
  // Twenty runs, the same bits.
  bool same = true;
  DeviceArray<__nv_bfloat16> first(values);
  CUDA_OK(cudaMemcpy(first.get(), d.out.get(), values * 2, cudaMemcpyDeviceToDevice));
  for (int i = 0; i < (context.small ? 2 : 20); ++i) {
    d.out.poison();
    d.lse.poison();
    run(d.params, plan, workspace.get(), nullptr);
    same = same && same_bits(d, first, values);
  }
  // The first row alone has the same bits as in the batch.
  if (invariant) {
    SparseMlaParams alone = d.params;
    alone.num_rows = 1;
    Case one = c;
    one.rows = 1;
    const SparseMlaPlan own = make_plan(one, true);
    d.out.poison();
    run(alone, own, workspace.get(), nullptr);
    same = same && same_bits(d, first, static_cast<size_t>(c.heads) * kC);
  }
  char detail[200];
  std::snprintf(detail, sizeof detail,
                "relative %.2e, of the allowed: worst row %.2f, lse %.2f, splits %d, groups %d, "
                "finite %d, same bits %d",
                a.relative, a.worst_row, a.worst_lse, plan.num_splits, groups, a.sane, same);
  const bool ok = a.sane && same && a.relative < 5e-3 && a.worst_row < 1 && a.worst_lse < 1 &&
                  groups >= least_groups;
  context.expect(ok, "sparse_mla " + describe(c) + (invariant ? " invariant" : ""), detail);
}

// Rows that share a gather: lengths, holes, head counts, groups that do and that do not.
template <typename T>
void copy_array(const DeviceArray<T>& from, const DeviceArray<T>& to) {
  CUDA_OK(cudaMemcpy(to.get(), from.get(), from.size() * sizeof(T), cudaMemcpyDeviceToDevice));
}

// A plan and a captured graph serve all layers and steps: other lengths, slots, queries and cached
// tokens in the same places give what a launch of their own gives.
void check_graph(Context& context, Case c, uint64_t seed) {
  Data d = make_data(c, seed, true);
  const SparseMlaPlan plan =
      kernels::sm90::plan_sparse_mla(c.layout, c.rows, c.heads, c.topk, multiprocessors(), false);
  DeviceArray<uint8_t> workspace(plan.workspace_bytes);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_OK(cudaStreamCreate(&stream));
  CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int layer = 0; layer < 2; ++layer) run(d.params, plan, workspace.get(), stream);
  CUDA_OK(cudaStreamEndCapture(stream, &graph));
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  bool same = true;
  for (int step = 0; step < 3; ++step) {
    if (step > 0) std::rotate(c.lens.begin(), c.lens.begin() + 1, c.lens.end());
    const Data other = make_data(c, seed + step, true);
    copy_array(other.q_latent, d.q_latent);
    copy_array(other.q_rope, d.q_rope);
    copy_array(other.cache, d.cache);
    copy_array(other.slots, d.slots);
    copy_array(other.lens, d.lens);
    d.out.poison();
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    run(other.params, plan, workspace.get(), nullptr);
    same =
        same && same_bits(d, other.out, d.out.size()) && d.lse.download() == other.lse.download();
  }
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaStreamDestroy(stream));
  context.expect(same, "sparse_mla in a graph, other batches: " + describe(c),
                 "splits " + std::to_string(plan.num_splits));
}

void check_groups(Context& context, LatentLayout layout, uint64_t seed) {
  // e4m3 rows are so quick alone that sharing pays with much overlap only.
  const float overlap = layout == LatentLayout::kBf16_1152 ? 0.9f : 0.98f;
  const Case shared{.layout = layout,
                    .rows = 1203,
                    .heads = 8,
                    .topk = 256,
                    .tokens = 8192,
                    .group = 8,
                    .overlap = overlap,
                    .row_step = context.small ? 40 : 1};
  check_case(context, shared, false, seed, 150);
  if (context.small) return;
  Case c = shared;
  c.overlap = 1.0f, c.lens = {256, 255, 0, 1, 63, 64, 65, 200, 256}, c.spread = 4.0f;
  check_case(context, c, false, seed + 1);
  c = shared, c.mixed = true, c.holes = true;
  check_case(context, c, false, seed + 2, 60);
  for (int heads : {1, 5, 13, 16, 32}) {
    c = shared, c.heads = heads, c.row_step = 3;
    c.group = heads <= 8 ? 8 : heads <= 16 ? 4 : 2;
    // Two rows of 32 heads never gain with 576.
    check_case(context, c, false, seed + 10 + heads,
               heads == 32 && layout == LatentLayout::kFp8_576 ? 0 : 150);
  }
  // Pages in two windows of the union's bit map; then a pool beyond the bit maps' limit.
  c = shared, c.rows = 1024, c.topk = 2048, c.tokens = 1 << 19, c.row_step = 41;
  c.overlap = layout == LatentLayout::kBf16_1152 ? 0.9f : 0.95f;
  check_case(context, c, false, seed + 3, 128);
  c.topk = 128, c.tokens = 1 << 23;
  check_case(context, c, false, seed + 4);
}

// Long rows, many rows, slots behind the first 2^31 bytes.
void check_large(Context& context, LatentLayout layout, uint64_t seed) {
  check_case(context, {.layout = layout, .rows = 2, .heads = 8, .topk = 100000, .tokens = 131072},
             false, seed);
  check_case(context, {.layout = layout, .rows = 1, .heads = 64, .topk = 100000, .tokens = 131072},
             true, seed + 1);
  check_case(context,
             {.layout = layout,
              .rows = 70000,
              .heads = 8,
              .topk = 64,
              .tokens = 8192,
              .lens = {64, 0, 31},
              .row_step = 997},
             false, seed + 2);
  for (int heads : {8, 64}) {
    check_case(context,
               {.layout = layout, .rows = 16, .heads = heads, .topk = 2048, .tokens = 8 << 20},
               false, seed + 3);
  }
}

// Queries rounded to e4m3, for a 576 cache and more than 32 heads.
void check_fp8_query(Context& context, uint64_t seed) {
  Case c{.layout = LatentLayout::kFp8_576,
         .rows = context.small ? 3 : 12,
         .heads = 64,
         .topk = context.small ? 128 : 2048,
         .tokens = 8192,
         .lens = {0, 1, 63, 64, 65, 128, 17, 100},
         .fp8_query = true};
  check_case(context, c, false, seed);
  if (context.small) return;
  c.lens = {}, c.holes = true, c.spread = 4.0f, c.rows = 300;
  check_case(context, c, false, seed + 1);
  c.heads = 100, c.rows = 5;
  check_case(context, c, true, seed + 2);
  c.heads = 32;
  context.expect(!make_plan(c, false).fp8_query, "sparse_mla 32 heads, queries as they are", "");
}

void check_all(Context& context) {
  const std::vector<int> lens = {0, 1, 63, 64, 65, 2047, 2048, 17, 15, 16, 128, 777};
  const std::vector<int> few = {0, 1, 63, 64, 65, 127, 128, 17};
  uint64_t seed = 1;
  for (LatentLayout layout : {LatentLayout::kBf16_1152, LatentLayout::kFp8_576,
                              LatentLayout::kFp8_644, LatentLayout::kFp8_656}) {
    for (int heads : {1, 8, 13, 16, 32, 64, 100, 128}) {
      if (context.small && heads != 8 && heads != 16 && heads != 64) continue;
      check_case(context,
                 {layout, context.small ? 3 : 12, heads, context.small ? 128 : 2048, 8192,
                  context.small ? few : lens, false},
                 false, seed++);
      check_case(context, {layout, 1, heads, context.small ? 128 : 2048, 8192, {}, true}, false,
                 seed++);
      check_case(context,
                 {.layout = layout,
                  .rows = context.small ? 2 : 5,
                  .heads = heads,
                  .topk = context.small ? 128 : 2048,
                  .tokens = 4096,
                  .lens = {},
                  .holes = true,
                  .spread = 4.0f},
                 heads == 8 || heads == 64, seed++);
    }
    for (int heads : {8, 64, 128}) {
      for (int rows : {1, 6}) {
        check_graph(context, {layout, rows, heads, 640, 4096, {640, 0, 77, 500, 64, 1}}, seed += 5);
      }
    }
    check_groups(context, layout, seed += 50);
    if (layout == LatentLayout::kFp8_576) check_fp8_query(context, seed += 50);
    if (context.small) continue;
    check_large(context, layout, seed += 50);
    // More rows than one pass of the grid, so that items follow each other in a block.
    check_case(context, {layout, 1200, 8, 256, 8192, {0, 256, 100, 31}, true}, false, seed++);
    check_case(context, {layout, 300, 64, 256, 8192, {0, 256, 100, 31}, true}, false, seed++);
    // Rows beyond the last full round of the grid, cut into pieces.
    check_case(context,
               {.layout = layout,
                .rows = 140,
                .heads = 64,
                .topk = 2048,
                .tokens = 8192,
                .lens = {2048, 0, 100, 2047, 1500},
                .row_step = 3},
               false, seed++);
  }
}

}  // namespace

void check_sparse_mla(Context& context) {
  if (!context.bench_only) check_all(context);
  if (context.bench) bench_sparse_mla(context);
}

}  // namespace winnow::gpu_check
