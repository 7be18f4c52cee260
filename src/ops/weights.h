// Weight matrices as ops see them: stored [out, in] row-major, y = x * W^T, no bias.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace winnow::ops {

struct LinearWeight {
  const void* data = nullptr;  // [out_features, in_features]
  DType dtype = DType::kF32;   // f32, bf16, f16 or e4m3
  // e4m3 only: [ceil(out / 128), ceil(in / 128)]; W[r][c] = data[r][c] * scale[r / 128][c / 128].
  const float* scale = nullptr;
  int64_t out_features = 0;
  int64_t in_features = 0;
};

// One SwiGLU block: down(silu(gate x) * up x).
struct MlpWeights {
  LinearWeight gate;  // [I, H]
  LinearWeight up;    // [I, H]
  LinearWeight down;  // [H, I]
};

}  // namespace winnow::ops
