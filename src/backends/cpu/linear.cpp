#include "backends/cpu/linear.h"

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

using TileKernel = void (*)(const LinearTile&);

TileKernel kernel_for(const KernelTable& kernels, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kernels.linear_f32;
    case DType::kBf16:
      return kernels.linear_bf16;
    case DType::kF16:
      return kernels.linear_f16;
    case DType::kE4m3:
      return kernels.linear_e4m3;
    default:
      break;
  }
  WINNOW_CHECK(false, "linear weight of dtype {}", to_string(dtype));
}

// Wide items read each packed row less often; narrow ones share few outputs more evenly. No
// influence on bits.
int64_t outputs_of_item(int64_t all_outputs, int64_t rows) {
  return rows > 4 && all_outputs >= 16 * kOutputTile ? kOutputTile : kOutputTile / 4;
}

}  // namespace

void CpuBackend::run_linear_chunk(const LinearJob& job, int64_t first, int64_t rows) {
  const ops::LinearWeight& weight = *job.weights[0];
  const int64_t in = weight.in_features, heads = job.num_heads;
  const int64_t outputs = weight.out_features / heads;
  const int64_t head_floats = rows * layout::ceil_div(in, kColumnBlock) * kColumnBlock;
  const bool to_e4m3 = weight.dtype == DType::kE4m3 && job.fp8_activations;
  float* packed = workspace_.packed.data();
  for_items(rows * heads, rows * heads * in, [&](int64_t item, int) {
    const int64_t head = item / rows;
    kernels_.pack_rows({.x = job.x + head * job.x_head_stride +
                             (job.entries == nullptr ? first * job.x_stride : 0),
                        .row_idx = job.entries == nullptr ? nullptr : job.entries + first,
                        .row_divisor = job.entries_per_row,
                        .x_stride = job.x_stride,
                        .num_rows = rows,
                        .in_features = in,
                        .weight_dtype = weight.dtype,
                        .to_e4m3 = to_e4m3,
                        .packed = packed + head * head_floats},
                       item % rows);
  });
  const TileKernel kernel = kernel_for(kernels_, weight.dtype);
  const int64_t num_weights = job.weights[1] != nullptr ? 2 : 1;
  const int64_t tile_outputs = outputs_of_item(num_weights * heads * outputs, rows);
  const int64_t tiles = layout::ceil_div(outputs, tile_outputs);
  for_items(num_weights * heads * tiles, num_weights * rows * weight.out_features * in,
            [&](int64_t item, int thread_idx) {
              const int64_t which = item / (heads * tiles), head = item / tiles % heads;
              const int64_t begin = item % tiles * tile_outputs;
              kernel({.packed = packed + head * head_floats,
                      .num_rows = rows,
                      .in_features = in,
                      .weight = job.weights[which]->data,
                      .w_scales = job.weights[which]->scale,
                      .first_output = head * outputs + begin,
                      .num_outputs = std::min(tile_outputs, outputs - begin),
                      .y = job.y[which] + first * job.y_stride,
                      .y_stride = job.y_stride,
                      .scratch = scratch_of(thread_idx).linear.data()});
            });
}

void CpuBackend::run_linear(const LinearJob& job) {
  const ops::LinearWeight& weight = *job.weights[0];
  const int64_t in = weight.in_features;
  WINNOW_CHECK(workspace_.prepared, "linear before prepare()");
  for (const ops::LinearWeight* w : job.weights) {
    if (w == nullptr) continue;
    WINNOW_CHECK(w->dtype != DType::kE4m3 || (w->scale != nullptr && job.num_heads == 1),
                 "e4m3 weight without scales, or by heads");
    WINNOW_CHECK(
        w->dtype == weight.dtype && w->in_features == in && w->out_features == weight.out_features,
        "weights of {} and {} share one pass", w->out_features, weight.out_features);
  }
  if (in == 0 || weight.out_features == 0) return;
  const int64_t row_floats = job.num_heads * layout::ceil_div(in, kColumnBlock) * kColumnBlock;
  const int64_t fits = static_cast<int64_t>(workspace_.packed.size()) / row_floats;
  const int64_t chunk = std::min(kRowChunk, fits);
  WINNOW_CHECK(chunk > 0, "in_features {} in {} heads is wider than the prepared model", in,
               job.num_heads);
  for (int64_t first = 0; first < job.num_rows; first += chunk) {
    run_linear_chunk(job, first, std::min(chunk, job.num_rows - first));
  }
}

void CpuBackend::linear(const ops::LinearArgs& args) {
  run_linear({.num_rows = args.num_rows,
              .x = static_cast<const float*>(args.x),
              .x_stride = args.weight.in_features,
              .weights = {&args.weight},
              .y = {static_cast<float*>(args.y)},
              .y_stride = args.weight.out_features,
              .fp8_activations = args.fp8_activations});
}

}  // namespace winnow::backends
