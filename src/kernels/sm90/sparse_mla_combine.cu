// Joins the pieces of split rows, always in the order of the splits. One block for a row and a
// head: 128 threads along the channels, kLanes of them take turns among the splits.
#include "kernels/sm90/launch.cuh"
#include "kernels/sm90/sparse_mla.cuh"

namespace winnow::kernels::sm90 {
namespace {

constexpr int kColumns = kLatentDim / 4;  // threads along the channels, 4 channels each

template <int kLanes>
__global__ void __launch_bounds__(kColumns* kLanes)
    sparse_mla_combine_kernel(const __grid_constant__ SparseMlaCall call) {
  __shared__ float4 sums[kLanes][kColumns];
  __shared__ float totals[kLanes];
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const int64_t index = blockIdx.x;  // row * num_heads + head
  const int64_t row = index / call.p.num_heads;
  const int head = static_cast<int>(index - row * call.p.num_heads);
  const int64_t first = row * call.num_splits * call.p.num_heads + head;
  const auto piece = [&](int s) { return first + static_cast<int64_t>(s) * call.p.num_heads; };

  float top = -INFINITY;
  for (int s = threadIdx.x % 32; s < call.num_splits; s += 32) {
    top = fmaxf(top, call.partial_lse[piece(s)]);
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
  const float base = top == -INFINITY ? 0.0f : top;

  float4 sum = make_float4(0, 0, 0, 0);
  float total = 0;
#pragma unroll 8
  for (int s = threadIdx.y; s < call.num_splits; s += kLanes) {
    const float weight = exp2_fast(call.partial_lse[piece(s)] - base);
    const float4 v =
        reinterpret_cast<const float4*>(call.partial_out + piece(s) * kLatentDim)[threadIdx.x];
    total += weight;
    sum.x += weight * v.x, sum.y += weight * v.y, sum.z += weight * v.z, sum.w += weight * v.w;
  }
  if constexpr (kLanes > 1) {
    sums[threadIdx.y][threadIdx.x] = sum;
    if (threadIdx.x == 0) totals[threadIdx.y] = total;
    __syncthreads();
    if (threadIdx.y != 0) return;
#pragma unroll
    for (int k = 1; k < kLanes; ++k) {
      const float4 v = sums[k][threadIdx.x];
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
      total += totals[k];
    }
  }
  const float inverse = total > 0 ? 1.0f / total : 0.0f;
  uint2 packed;
  packed.x = pack_bf16(sum.x * inverse, sum.y * inverse);
  packed.y = pack_bf16(sum.z * inverse, sum.w * inverse);
  reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(call.p.out) +
                           index * kLatentDim)[threadIdx.x] = packed;
  if (call.p.lse != nullptr && threadIdx.x == 0) {
    call.p.lse[index] = total > 0 ? (top + log2_fast(total)) * kLn2 : -INFINITY;
  }
}

template <int kLanes>
cudaError_t launch(const SparseMlaCall& call, cudaStream_t stream) {
  return launch_overlapped(sparse_mla_combine_kernel<kLanes>,
                           {.blocks = static_cast<int64_t>(call.p.num_rows) * call.p.num_heads,
                            .threads = dim3(kColumns, kLanes)},
                           stream, call);
}

}  // namespace

cudaError_t launch_sparse_mla_combine(const SparseMlaCall& call, cudaStream_t stream) {
  return call.num_splits <= 8 ? launch<1>(call, stream) : launch<4>(call, stream);
}

}  // namespace winnow::kernels::sm90
