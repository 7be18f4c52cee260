// One matrix product for every op: rows of x against a range of a weight's rows.
#pragma once

#include <cstdint>

#include "ops/weights.h"

namespace winnow::backends {

struct LinearJob {
  int64_t num_rows = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;  // elements
  const ops::LinearWeight* weight = nullptr;
  bool fp8_activations = false;  // only looked at for e4m3 weights
  float* y = nullptr;            // y[r][n] = x[r] . W[n]
  int64_t y_stride = 0;
};

// The same product for each head: y[r][h] = x[r][h] . W[h * outputs + n], weight rows by head.
struct HeadLinearJob {
  int64_t num_rows = 0;
  int64_t num_heads = 0;
  const float* x = nullptr;
  int64_t x_row_stride = 0;
  int64_t x_head_stride = 0;
  const ops::LinearWeight* weight = nullptr;
  float* y = nullptr;  // [num_rows, num_heads, outputs a head]
};

}  // namespace winnow::backends
