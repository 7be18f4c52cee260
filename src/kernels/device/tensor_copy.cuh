// Copies of boxes of a tensor map into swizzled shared memory.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/device/async_copy.cuh"

namespace winnow::kernels {

// The map is a __grid_constant__ parameter; the barrier must expect the bytes of the whole box,
// parts outside the tensor (filled with zeros) included.
__device__ __forceinline__ void tensor_copy_3d(
    uint32_t smem, const CUtensorMap* map, int x, int y, int z, uint32_t mbarrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(smem),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(mbarrier)
      : "memory");
}
// As above; what it brings to the L2 is the first to leave it again.
__device__ __forceinline__ void tensor_copy_3d_once(
    uint32_t smem, const CUtensorMap* map, int x, int y, int z, uint32_t mbarrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(smem),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(mbarrier), "l"(evict_first_policy())
      : "memory");
}
__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace winnow::kernels
