#include "kernels/sm90/tensor_map.h"

namespace winnow::kernels::sm90 {

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// Through the runtime, so that nothing links against the driver library.
EncodeTiled find_encoder() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    return nullptr;
  }
  return reinterpret_cast<EncodeTiled>(entry);
}

}  // namespace

cudaError_t make_tensor_map(const ByteTensor& tensor, CUtensorMap* map) {
  static const EncodeTiled encode = find_encoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint64_t dims[3] = {128, static_cast<cuuint64_t>(tensor.rows),
                              static_cast<cuuint64_t>(tensor.depth)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(tensor.row_stride),
                                 static_cast<cuuint64_t>(tensor.depth_stride)};
  const cuuint32_t box[3] = {128, static_cast<cuuint32_t>(tensor.box_rows),
                             static_cast<cuuint32_t>(tensor.box_depth)};
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult result =
      encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<void*>(tensor.data), dims, strides,
             box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace winnow::kernels::sm90
