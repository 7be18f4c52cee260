#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/row_math.h"
#include "base/error.h"

namespace winnow::backends {

void CpuBackend::embed(const ops::EmbedArgs& args) {
  const int64_t width = args.table.in_features;
  WINNOW_CHECK(args.table.dtype != DType::kE4m3, "embedding tables are f32, bf16 or f16");
  auto* out = static_cast<float*>(args.out);
  for_items(args.num_rows, args.num_rows * width, [&](int64_t row, int) {
    const int64_t id = args.token_ids[row];
    WINNOW_CHECK(id >= 0 && id < args.table.out_features, "token id {} of {}", id,
                 args.table.out_features);
    decode_weight_row(args.table, id, out + row * width);
  });
}

void CpuBackend::rms_norm(const ops::RmsNormArgs& args) {
  const int64_t width = args.width;
  for_items(args.num_rows, args.num_rows * width, [&](int64_t row, int) {
    float* residual = static_cast<float*>(args.residual) + row * args.residual_stride;
    if (args.delta != nullptr) {
      kernels_.add(residual, static_cast<const float*>(args.delta) + row * width, width);
    }
    kernels_.rms_norm(residual, args.weight, width, args.eps,
                      static_cast<float*>(args.out) + row * width);
  });
}

void CpuBackend::gather_rows(const ops::GatherRowsArgs& args) {
  const auto* x = static_cast<const float*>(args.x);
  auto* out = static_cast<float*>(args.out);
  for (int64_t row = 0; row < args.num_rows; ++row) {
    std::memcpy(out + row * args.width, x + args.row_idx[row] * args.width,
                static_cast<size_t>(args.width) * sizeof(float));
  }
}

}  // namespace winnow::backends
