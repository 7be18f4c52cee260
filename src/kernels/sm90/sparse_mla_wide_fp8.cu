// The wide sparse MLA kernel for e4m3 caches, which it widens to f16 while they are gathered.
#include "kernels/sm90/sparse_mla_wide.cuh"

namespace winnow::kernels::sm90 {

using layout::LatentLayout;

cudaError_t launch_sparse_mla_wide_fp8(
    const SparseMlaCall& call, LatentLayout layout, bool grouped, int grid, cudaStream_t stream) {
  const auto of_layout = [&]<LatentLayout kLayout>() {
    return grouped ? wide::launch<kLayout, true>(call, grid, stream)
                   : wide::launch<kLayout, false>(call, grid, stream);
  };
  switch (layout) {
    case LatentLayout::kFp8_576:
      return of_layout.template operator()<LatentLayout::kFp8_576>();
    case LatentLayout::kFp8_644:
      return of_layout.template operator()<LatentLayout::kFp8_644>();
    case LatentLayout::kFp8_656:
      return of_layout.template operator()<LatentLayout::kFp8_656>();
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
