#include "backends/cpu/linear.h"

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

// The checkpoint's own floor for activations (LinearArgs), unlike the caches' 1e-4.
constexpr float kActivationFloor = 1e-10f;

}  // namespace

// Rounds x to e4m3 per row and 128 channels; values (not codes) and scales into the workspace.
static void quantize_rows(
    const LinearJob& job, int64_t first, int64_t count, Workspace& ws, ThreadPool& pool) {
  const int64_t in = job.weight->in_features;
  const int64_t groups = layout::ceil_div(in, layout::kScaleGroup);
  pool.parallel_for(count, [&](int64_t r, int) {
    const float* x = job.x + (first + r) * job.x_stride;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = g * layout::kScaleGroup;
      const int64_t n = std::min<int64_t>(layout::kScaleGroup, in - begin);
      const float scale = e4m3_scale(x + begin, n, kActivationFloor);
      ws.x_scales[static_cast<size_t>(r * groups + g)] = scale;
      for (int64_t i = begin; i < begin + n; ++i) {
        ws.x_codes[static_cast<size_t>(r * in + i)] =
            layout::e4m3_to_f32(layout::f32_to_e4m3(x[i] / scale));
      }
    }
  });
}

// One output against all rows; scales a block of 128 x 128 at a time.
static void block_scaled_outputs(const LinearJob& job,
                                 const float* x,
                                 int64_t x_stride,
                                 const float* x_scales,
                                 int64_t rows,
                                 int64_t first_row,
                                 int64_t output,
                                 const float* decoded) {
  const int64_t in = job.weight->in_features;
  const int64_t groups = layout::ceil_div(in, layout::kScaleGroup);
  const float* w_scales = job.weight->scale + output / layout::kScaleGroup * groups;
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = g * layout::kScaleGroup;
      const int64_t n = std::min<int64_t>(layout::kScaleGroup, in - begin);
      const float scale =
          x_scales != nullptr ? x_scales[r * groups + g] * w_scales[g] : w_scales[g];
      sum += dot(x + r * x_stride + begin, decoded + begin, n) * scale;
    }
    job.y[(first_row + r) * job.y_stride + output] = sum;
  }
}

void CpuBackend::run_linear(const LinearJob& job) {
  const ops::LinearWeight& weight = *job.weight;
  const int64_t in = weight.in_features;
  const bool block_scaled = weight.dtype == DType::kE4m3;
  const bool quantize = block_scaled && job.fp8_activations;
  Workspace& ws = workspace_;
  WINNOW_CHECK(ws.prepared, "linear before prepare()");
  WINNOW_CHECK(!block_scaled || weight.scale != nullptr, "e4m3 weight without scales");
  WINNOW_CHECK(in <= static_cast<int64_t>(ws.threads[0].linear.size()), "in_features {}", in);
  const int64_t groups = layout::ceil_div(in, layout::kScaleGroup);
  const int64_t chunk = std::min(static_cast<int64_t>(ws.x_codes.size()) / in,
                                 static_cast<int64_t>(ws.x_scales.size()) / groups);
  WINNOW_CHECK(chunk > 0, "in_features {}", in);
  for (int64_t first = 0; first < job.num_rows; first += chunk) {
    const int64_t rows = std::min(chunk, job.num_rows - first);
    const float* x = job.x + first * job.x_stride;
    int64_t x_stride = job.x_stride;
    if (quantize) {
      quantize_rows(job, first, rows, ws, pool_);
      x = ws.x_codes.data();
      x_stride = in;
    }
    pool_.parallel_for(weight.out_features, [&](int64_t n, int thread_idx) {
      float* decoded = ws.threads[static_cast<size_t>(thread_idx)].linear.data();
      decode_weight_row(weight, n, decoded);
      if (block_scaled) {
        block_scaled_outputs(job, x, x_stride, quantize ? ws.x_scales.data() : nullptr, rows, first,
                             n, decoded);
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        job.y[(first + r) * job.y_stride + n] = dot(x + r * x_stride, decoded, in);
      }
    });
  }
}

void CpuBackend::linear(const ops::LinearArgs& args) {
  run_linear({.num_rows = args.num_rows,
              .x = static_cast<const float*>(args.x),
              .x_stride = args.weight.in_features,
              .weight = &args.weight,
              .fp8_activations = args.fp8_activations,
              .y = static_cast<float*>(args.y),
              .y_stride = args.weight.out_features});
}

}  // namespace winnow::backends
