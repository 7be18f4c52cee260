// wgmma with fp32 accumulators (sm_90a): what the kernels of this folder use. A is K-major; the
// overloads of a function differ in N, which is twice the count of accumulators of a thread. The
// tensor cores keep about 13 bits while they add e4m3 products: add up few steps, then in fp32.
#pragma once

#include <cstdint>

namespace winnow::kernels {

// A tile of rows of 128 bytes, the 16-byte chunk c of row r stored at chunk c ^ (r & 7). Rows of 8
// lie `row_group_bytes` apart. Both for K-major operands (row = M or N index) and for MN-major ones
// (row = K index); there `mn_stride_bytes` is the distance between tiles of 64 columns.
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t smem,
                                                     uint32_t mn_stride_bytes = 16,
                                                     uint32_t row_group_bytes = 1024) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | uint64_t{row_group_bytes >> 4} << 32 |
         (uint64_t{(mn_stride_bytes >> 4) & 0x3fff} << 16) | ((smem >> 4) & 0x3fff);
}
// K-major tiles of 64-byte rows, the 16-byte chunk c of row r stored at chunk c ^ (r / 2 & 3);
// groups of 8 rows lie 512 bytes apart.
__device__ __forceinline__ uint64_t wgmma_descriptor_64b(uint32_t smem) {
  constexpr uint64_t kSwizzle64 = uint64_t{2} << 62;
  constexpr uint64_t kRowGroupStride = uint64_t{512 >> 4} << 32;
  return kSwizzle64 | kRowGroupStride | (uint64_t{1} << 16) | ((smem >> 4) & 0x3fff);
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Tells the compiler that the accumulators change behind its back here.
template <int kCount>
__device__ __forceinline__ void wgmma_pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// clang-format off
#define WINNOW_WGMMA_D4 \
  "{%0, %1, %2, %3}"
#define WINNOW_WGMMA_OUT4 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define WINNOW_WGMMA_D8 \
  "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define WINNOW_WGMMA_OUT8 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define WINNOW_WGMMA_D16 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define WINNOW_WGMMA_OUT16 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define WINNOW_WGMMA_D32 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define WINNOW_WGMMA_OUT32 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
  "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define WINNOW_WGMMA_D64 \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define WINNOW_WGMMA_OUT64 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), \
  "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
  "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
  "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
  "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), \
  "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

// d (+)= A B; accumulate = 0 overwrites d. SHAPE: m64nNkK and the types; TAIL: which operands are
// transposed; A, B, P: the numbers of the operands behind COUNT accumulators.
#define WINNOW_WGMMA_SS(NAME, COUNT, SHAPE, TAIL, A, B, P)                                   \
  __device__ __forceinline__ void NAME(float(&d)[COUNT], uint64_t a, uint64_t b, int accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                             \
                 "wgmma.mma_async.sync.aligned." SHAPE " " WINNOW_WGMMA_D##COUNT ", " A ", " B  \
                 ", p, 1, 1" TAIL ";\n}\n"                                                  \
                 : WINNOW_WGMMA_OUT##COUNT                                                  \
                 : "l"(a), "l"(b), "r"(accumulate));                                        \
  }
#define WINNOW_WGMMA_RS(NAME, COUNT, SHAPE, TAIL, A, B, P)                                   \
  __device__ __forceinline__ void NAME(float(&d)[COUNT], const uint32_t(&a)[4], uint64_t b,   \
                                       int accumulate) {                                    \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                             \
                 "wgmma.mma_async.sync.aligned." SHAPE " " WINNOW_WGMMA_D##COUNT ", {" A "}, " B \
                 ", p, 1, 1" TAIL ";\n}\n"                                                  \
                 : WINNOW_WGMMA_OUT##COUNT                                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));    \
  }

// 32 e4m3 deep, B K-major, A from shared memory.
WINNOW_WGMMA_SS(wgmma_e4m3_ss, 8, "m64n16k32.f32.e4m3.e4m3", "", "%8", "%9", "%10")
WINNOW_WGMMA_SS(wgmma_e4m3_ss, 16, "m64n32k32.f32.e4m3.e4m3", "", "%16", "%17", "%18")
WINNOW_WGMMA_SS(wgmma_e4m3_ss, 32, "m64n64k32.f32.e4m3.e4m3", "", "%32", "%33", "%34")
WINNOW_WGMMA_SS(wgmma_e4m3_ss, 64, "m64n128k32.f32.e4m3.e4m3", "", "%64", "%65", "%66")
// The same, A from registers: thread (g, t) of a warp holds rows g (a0, a2) and g + 8 (a1, a3),
// columns 4t .. 4t + 3 (a0, a1) and 16 more (a2, a3).
WINNOW_WGMMA_RS(wgmma_e4m3_rs, 8, "m64n16k32.f32.e4m3.e4m3", "", "%8, %9, %10, %11", "%12", "%13")
WINNOW_WGMMA_RS(wgmma_e4m3_rs, 16, "m64n32k32.f32.e4m3.e4m3", "", "%16, %17, %18, %19", "%20", "%21")
WINNOW_WGMMA_RS(wgmma_e4m3_rs, 32, "m64n64k32.f32.e4m3.e4m3", "", "%32, %33, %34, %35", "%36", "%37")

// 16 bf16 deep, both operands K-major in shared memory.
WINNOW_WGMMA_SS(wgmma_bf16_ss, 4, "m64n8k16.f32.bf16.bf16", ", 0, 0", "%4", "%5", "%6")
WINNOW_WGMMA_SS(wgmma_bf16_ss, 8, "m64n16k16.f32.bf16.bf16", ", 0, 0", "%8", "%9", "%10")
WINNOW_WGMMA_SS(wgmma_bf16_ss, 16, "m64n32k16.f32.bf16.bf16", ", 0, 0", "%16", "%17", "%18")
WINNOW_WGMMA_SS(wgmma_bf16_ss, 32, "m64n64k16.f32.bf16.bf16", ", 0, 0", "%32", "%33", "%34")
// B MN-major: rows are the K index.
WINNOW_WGMMA_SS(wgmma_bf16_ss_nt, 64, "m64n128k16.f32.bf16.bf16", ", 0, 1", "%64", "%65", "%66")
// A from registers: rows g (a0, a2) and g + 8 (a1, a3), columns 2t, 2t + 1 (a0, a1) and 8 more (a2, a3).
WINNOW_WGMMA_RS(wgmma_bf16_rs, 4, "m64n8k16.f32.bf16.bf16", ", 0", "%4, %5, %6, %7", "%8", "%9")
WINNOW_WGMMA_RS(wgmma_bf16_rs, 8, "m64n16k16.f32.bf16.bf16", ", 0", "%8, %9, %10, %11", "%12", "%13")
WINNOW_WGMMA_RS(wgmma_bf16_rs, 16, "m64n32k16.f32.bf16.bf16", ", 0", "%16, %17, %18, %19", "%20", "%21")
WINNOW_WGMMA_RS(wgmma_bf16_rs, 32, "m64n64k16.f32.bf16.bf16", ", 0", "%32, %33, %34, %35", "%36", "%37")
WINNOW_WGMMA_RS(wgmma_f16_rs, 4, "m64n8k16.f32.f16.f16", ", 0", "%4, %5, %6, %7", "%8", "%9")
WINNOW_WGMMA_RS(wgmma_f16_rs, 8, "m64n16k16.f32.f16.f16", ", 0", "%8, %9, %10, %11", "%12", "%13")
WINNOW_WGMMA_RS(wgmma_f16_rs, 16, "m64n32k16.f32.f16.f16", ", 0", "%16, %17, %18, %19", "%20", "%21")
WINNOW_WGMMA_RS(wgmma_f16_rs, 32, "m64n64k16.f32.f16.f16", ", 0", "%32, %33, %34, %35", "%36", "%37")

// f16
WINNOW_WGMMA_SS(wgmma_f16_ss, 32, "m64n64k16.f32.f16.f16", ", 0, 0", "%32", "%33", "%34")
WINNOW_WGMMA_SS(wgmma_f16_ss_nt, 64, "m64n128k16.f32.f16.f16", ", 0, 1", "%64", "%65", "%66")
WINNOW_WGMMA_RS(wgmma_f16_rs_nt, 64, "m64n128k16.f32.f16.f16", ", 1", "%64, %65, %66, %67", "%68", "%69")
// clang-format on

#undef WINNOW_WGMMA_SS
#undef WINNOW_WGMMA_RS

// d = a (64 rows) * b^T (2 * kCount rows) over 128 bytes of depth, both in tiles of 128-byte rows:
// asynchronous, one commit group.
template <int kCount>
__device__ __forceinline__ void wgmma_e4m3_tile(float (&d)[kCount], uint64_t a, uint64_t b) {
  wgmma_pin(d);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) wgmma_e4m3_ss(d, a + 2 * step, b + 2 * step, step);
  wgmma_commit();
}

}  // namespace winnow::kernels
