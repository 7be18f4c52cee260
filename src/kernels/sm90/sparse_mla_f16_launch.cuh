// The f16 sparse MLA kernel and its instances for a layout: sparse_mla_f16_*.cu compile one each.
#pragma once

#include "kernels/sm90/launch.cuh"
#include "kernels/sm90/sparse_mla_f16_outputs.cuh"

namespace winnow::kernels::sm90 {
namespace f16 {

template <class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    sparse_mla_f16_kernel(const __grid_constant__ SparseMlaCall call) {
  extern __shared__ uint8_t raw[];
  auto& shared = swizzle_aligned<Shared<T>>(raw);
  if (threadIdx.x == 0) {
    for (int s = 0; s < T::kStages; ++s) {
      shared.full[s].init(T::kTokenScale ? 256 : 128);
      // Here and below every thread that reads says so.
      shared.empty[s].init(128 + 128 * T::kOutputs);
    }
    shared.scores_full.init(128);
    shared.scores_empty.init(128 * T::kOutputs);
    fence_mbarrier_init();
  }
  __syncthreads();
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const int role = warp_uniform(threadIdx.x / 128);
  if (role == 0) {
    shrink_registers<T::kProducerRegisters>();
    Producer<T> producer{.call = call, .shared = shared};
    producer.run();
  } else if (role == 1) {
    if constexpr (T::kLines == 64) {
      shrink_registers<T::kScoreRegisters>();
    } else {
      grow_registers<T::kScoreRegisters>();
    }
    Scorer<T> scorer{.call = call, .shared = shared};
    scorer.run();
  } else {
    grow_registers<T::kOutputRegisters>();
    Accumulator<T> accumulator{.call = call, .shared = shared, .half = role - 2};
    accumulator.run();
  }
}

template <class T>
cudaError_t launch(const SparseMlaCall& call, int grid, cudaStream_t stream) {
  constexpr int kBytes = static_cast<int>(sizeof(Shared<T>)) + kSwizzleBytes;
  static_assert(kBytes <= T::kMostShared);
  const auto kernel = sparse_mla_f16_kernel<T>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  return launch_overlapped(kernel, {.blocks = grid, .threads = T::kThreads, .bytes = kBytes},
                           stream, call);
}

}  // namespace f16

template <layout::LatentLayout kLayout>
cudaError_t launch_sparse_mla_f16_layout(const SparseMlaCall& call,
                                         const F16Tile& tile,
                                         int grid,
                                         cudaStream_t stream) {
  if (tile.grouped) {
    return tile.lines == 64 ? f16::launch<f16::Traits<kLayout, 64, true, false>>(call, grid, stream)
                            : cudaErrorInvalidValue;
  }
  if constexpr (kLayout == layout::LatentLayout::kFp8_576) {
    if (tile.fp8_query) {
      return tile.lines == 64
                 ? f16::launch<f16::Traits<kLayout, 64, false, true>>(call, grid, stream)
                 : cudaErrorInvalidValue;
    }
  }
  switch (tile.lines) {
    case 16:
      return f16::launch<f16::Traits<kLayout, 16, false, false>>(call, grid, stream);
    case 32:
      return f16::launch<f16::Traits<kLayout, 32, false, false>>(call, grid, stream);
    case 64:
      return f16::launch<f16::Traits<kLayout, 64, false, false>>(call, grid, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace winnow::kernels::sm90
