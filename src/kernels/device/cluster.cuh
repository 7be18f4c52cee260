// What the blocks of a cluster do with each other's shared memory (sm_90).
#pragma once

#include <cstdint>

namespace winnow::kernels {

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// All threads of all blocks: what they wrote before is seen after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
// The address, in the cluster's window, of what lies at `smem` in block `rank`.
__device__ __forceinline__ uint32_t cluster_address(uint32_t smem, uint32_t rank) {
  uint32_t out;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(smem), "r"(rank));
  return out;
}
__device__ __forceinline__ void cluster_arrive(uint32_t mbarrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mbarrier)
               : "memory");
}
// Waits for a phase that threads of other blocks end.
__device__ __forceinline__ void cluster_wait(uint32_t mbarrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(mbarrier), "r"(parity)
        : "memory");
  } while (done == 0);
}
// 16 bytes into another block; its barrier, which expects the bytes, learns of their arrival.
__device__ __forceinline__ void store_cluster_16(uint32_t to, uint4 v, uint32_t mbarrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(mbarrier)
      : "memory");
}

}  // namespace winnow::kernels
