#include "backends/cpu/linear.h"

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"

namespace winnow::backends {

const TileKernel& tile_kernel(const KernelTable& kernels, DType dtype) {
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

namespace {

// Few outputs share evenly among threads; many rows read each packed row less often with more of
// them. No influence on bits.
int64_t outputs_of_tile(int64_t all_outputs, int64_t rows) {
  return rows > kFewRows && all_outputs >= 16 * kOutputTile ? kOutputTile : kOutputTile / 4;
}

struct Span {
  int64_t begin = 0, end = 0;
};

// Span idx of count tiles: each takes a fair share of half of what is left. Long ones first, so
// that a thread mostly goes on where its last tile ended and asks for the weights ahead of itself;
// short ones last, so that all threads end together. Empty behind the last.
Span span_of(int64_t count, int64_t num_threads, int64_t idx) {
  Span span;
  for (int64_t i = 0; i <= idx; ++i) {
    span.begin = span.end;
    span.end += layout::ceil_div(count - span.begin, 2 * num_threads);
  }
  return span;
}

int64_t num_spans(int64_t count, int64_t num_threads) {
  int64_t spans = 0;
  for (int64_t end = 0; end < count; ++spans) end += layout::ceil_div(count - end, 2 * num_threads);
  return spans;
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
  const TileKernel& kernel = tile_kernel(kernels_, weight.dtype);
  const int64_t num_weights = job.weights[1] != nullptr ? 2 : 1;
  const int64_t tile_outputs = outputs_of_tile(num_weights * heads * outputs, rows);
  const int64_t tiles = layout::ceil_div(outputs, tile_outputs);  // of one head
  const int64_t all_tiles = num_weights * heads * tiles;
  const int64_t threads = pool_.num_threads();
  for_items(
      num_spans(all_tiles, threads), num_weights * rows * weight.out_features * in,
      [&](int64_t idx, int thread_idx) {
        const Span span = span_of(all_tiles, threads, idx);
        for (int64_t tile = span.begin; tile < span.end;) {
          const int64_t which = tile / (heads * tiles), head = tile / tiles % heads;
          const int64_t begin = tile % tiles * tile_outputs;
          // As many tiles in one as keep to a head, a row of scale blocks and the span.
          const int64_t end = std::min({outputs, (begin / kOutputTile + 1) * kOutputTile,
                                        begin + (span.end - tile) * tile_outputs});
          tile += layout::ceil_div(end - begin, tile_outputs);
          const int64_t tiles_behind = std::min(span.end, (which + 1) * heads * tiles) - tile;
          kernel({.packed = packed + head * head_floats,
                  .num_rows = rows,
                  .in_features = in,
                  .weight = job.weights[which]->data,
                  .w_scales = job.weights[which]->scale,
                  .first_output = head * outputs + begin,
                  .num_outputs = end - begin,
                  .outputs_behind = outputs % tile_outputs == 0 ? tiles_behind * tile_outputs : 0,
                  .y = job.y[which] + first * job.y_stride,
                  .y_stride = job.y_stride,
                  .scratch = scratch_of(thread_idx).linear.data()});
        }
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
