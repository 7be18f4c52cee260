// The wide sparse MLA kernel for e4m3 caches, which it widens to f16 while they are gathered.
#include "kernels/sm90/sparse_mla_wide.cuh"

namespace winnow::kernels::sm90 {

using layout::LatentLayout;

cudaError_t launch_sparse_mla_wide_fp8(
    const SparseMlaCall& call, LatentLayout layout, bool grouped, int grid, cudaStream_t stream) {
  // Rows of 576 and 644 alone are quicker with tokens as the M side, whatever the heads.
  if (!grouped) {
    return layout == LatentLayout::kFp8_656
               ? wide::launch<LatentLayout::kFp8_656, false>(call, grid, stream)
               : cudaErrorInvalidValue;
  }
  switch (layout) {
    case LatentLayout::kFp8_576:
      return wide::launch<LatentLayout::kFp8_576, true>(call, grid, stream);
    case LatentLayout::kFp8_644:
      return wide::launch<LatentLayout::kFp8_644, true>(call, grid, stream);
    case LatentLayout::kFp8_656:
      return wide::launch<LatentLayout::kFp8_656, true>(call, grid, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
