#include "kernels/sm90/sparse_mla_f16_launch.cuh"

namespace winnow::kernels::sm90 {

template cudaError_t launch_sparse_mla_f16_layout<layout::LatentLayout::kFp8_576>(
    const SparseMlaCall&, const F16Tile&, int, cudaStream_t);

}  // namespace winnow::kernels::sm90
