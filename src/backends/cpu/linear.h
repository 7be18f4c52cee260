// One driver for every matrix product of every op.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "ops/weights.h"

namespace winnow::backends {

using TileKernel = Kernel<void(const LinearTile& tile)>;
// The body for weights of this dtype.
const TileKernel& tile_kernel(const KernelTable& kernels, DType dtype);

struct LinearJob {
  int64_t num_rows = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;              // elements between rows
  const int32_t* entries = nullptr;  // row r reads x row entries[r] / entries_per_row; null: r
  int64_t entries_per_row = 1;
  // With heads, weight rows [h * outputs, (h + 1) * outputs) meet x + h * x_head_stride.
  int64_t num_heads = 1;
  int64_t x_head_stride = 0;
  // One or two weights of one shape and dtype that share x.
  const ops::LinearWeight* weights[2] = {};
  float* y[2] = {};  // [num_rows, y_stride], column = weight row
  int64_t y_stride = 0;
  bool fp8_activations = false;  // only looked at for e4m3 weights
};

}  // namespace winnow::backends
