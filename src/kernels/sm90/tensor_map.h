// Tensor maps for the copy engine, made on the host.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace winnow::kernels::sm90 {

// Bytes seen as [depth][rows][width], copied in boxes of [box_depth][box_rows][width] into shared
// rows of 128 bytes with 128-byte swizzle. width is 128; strides in bytes, multiples of 16.
struct ByteTensor {
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t row_stride = 0;
  int64_t depth_stride = 0;
  int32_t box_rows = 0;
  int32_t box_depth = 0;
};

cudaError_t make_tensor_map(const ByteTensor& tensor, CUtensorMap* map);

}  // namespace winnow::kernels::sm90
