// The wide sparse MLA kernel for bf16 caches, and the choice among its layouts.
#include "kernels/sm90/sparse_mla_wide.cuh"

namespace winnow::kernels::sm90 {

using layout::LatentLayout;

cudaError_t launch_sparse_mla_wide(
    const SparseMlaCall& call, LatentLayout layout, bool grouped, int grid, cudaStream_t stream) {
  if (layout != LatentLayout::kBf16_1152) {
    return launch_sparse_mla_wide_fp8(call, layout, grouped, grid, stream);
  }
  return grouped ? wide::launch<LatentLayout::kBf16_1152, true>(call, grid, stream)
                 : wide::launch<LatentLayout::kBf16_1152, false>(call, grid, stream);
}

}  // namespace winnow::kernels::sm90
