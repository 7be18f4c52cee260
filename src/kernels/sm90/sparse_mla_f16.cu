// The choice among the layouts of the f16 sparse MLA kernel.
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {

using layout::LatentLayout;

cudaError_t launch_sparse_mla_f16(const SparseMlaCall& call,
                                  LatentLayout layout,
                                  const F16Tile& tile,
                                  int grid,
                                  cudaStream_t stream) {
  switch (layout) {
    case LatentLayout::kFp8_576:
      return launch_sparse_mla_f16_layout<LatentLayout::kFp8_576>(call, tile, grid, stream);
    case LatentLayout::kFp8_644:
      return launch_sparse_mla_f16_layout<LatentLayout::kFp8_644>(call, tile, grid, stream);
    case LatentLayout::kFp8_656:
      return launch_sparse_mla_f16_layout<LatentLayout::kFp8_656>(call, tile, grid, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
