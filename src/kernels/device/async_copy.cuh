// Copies from global to shared memory that run beside the issuing thread.
#pragma once

#include <cstdint>

namespace winnow::kernels {

// For data that nobody reads again: it leaves the L2 before anything else does.
__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  return policy;
}

// 16 bytes by this thread, past the L1; bytes beyond `valid_bytes` (0 or 16) become zero.
// kLineHint: the whole 128-byte line is worth bringing to the L2.
template <bool kLineHint = true>
__device__ __forceinline__ void cp_async_16(uint32_t smem,
                                            const void* global,
                                            uint32_t valid_bytes) {
  if constexpr (kLineHint) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(smem), "l"(global),
                 "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem), "l"(global),
                 "r"(valid_bytes)
                 : "memory");
  }
}
// 4 bytes by this thread.
__device__ __forceinline__ void cp_async_4(uint32_t smem,
                                           const void* global,
                                           uint32_t valid_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(smem), "l"(global),
               "r"(valid_bytes)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most kPending of this thread's newest groups are still under way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Brings a contiguous piece to the L2; address and bytes are multiples of 16.
__device__ __forceinline__ void prefetch_bulk(const void* global, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}
// One contiguous piece by the copy engine; addresses and bytes are multiples of 16. The barrier
// must expect the bytes.
__device__ __forceinline__ void bulk_copy(uint32_t smem,
                                          const void* global,
                                          uint32_t bytes,
                                          uint32_t mbarrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(smem),
      "l"(global), "r"(bytes), "r"(mbarrier)
      : "memory");
}

}  // namespace winnow::kernels
