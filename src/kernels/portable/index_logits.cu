// Index logits in fp32 on the plain cores: any head count, any head width up to 256, every key
// layout, every page size. The fallback where the tensor-core kernels do not fit, and the
// arithmetic that --precision reference asks for. A block takes 64 tokens of one row; heads come 32
// at a time, channels 32 at a time, a thread sums 4 tokens x 4 heads. All sums have one order,
// whatever the batch.
#include <cuda_bf16.h>

#include "kernels/indexer.h"

namespace winnow::kernels::portable {
namespace {

using layout::IndexKeyLayout;

constexpr int kTokens = 64;  // of a block
constexpr int kHeads = 32;   // at a time
constexpr int kDepth = 32;   // channels at a time
constexpr int kThreads = 128;
constexpr int kHeadGroups = kHeads / 4;
constexpr int kPadding = 4;

// e4m3 without the conversion of sm_89: the value's exponent moved to fp32's, 2^120 too small.
__device__ __forceinline__ float widen_e4m3(uint8_t code) {
  const uint32_t bits = (code & 0x80u) << 24 | (code & 0x7fu) << 20;
  const float value = __uint_as_float(bits) * 0x1p120f;
  return (code & 0x7f) == 0x7f ? __uint_as_float(0x7fc00000u) : value;
}

template <IndexKeyLayout kLayout>
__device__ __forceinline__ float load_value(const void* from, int64_t at) {
  if constexpr (kLayout == IndexKeyLayout::kF32) return static_cast<const float*>(from)[at];
  if constexpr (kLayout == IndexKeyLayout::kBf16_256) {
    return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
  }
  return widen_e4m3(static_cast<const uint8_t*>(from)[at]);
}

struct Tiles {
  float q[kDepth][kHeads + kPadding];
  float k[kDepth][kTokens + kPadding];
  float sums[kHeadGroups][kTokens];
};

template <IndexKeyLayout kLayout>
__global__ void __launch_bounds__(kThreads)
    index_logits_kernel(const IndexLogitsParams p, int64_t tiles_of_row) {
  __shared__ Tiles tiles;
  const int64_t row = blockIdx.x / tiles_of_row;
  const int64_t first = p.key_begin + (blockIdx.x - row * tiles_of_row) * kTokens;
  const int64_t seen = int64_t{p.rows.positions[row]} + 1;
  if (p.skip_tokens > 0 && seen <= p.skip_tokens) return;
  float* logits = p.logits + row * p.logits_stride - p.key_begin;
  const int64_t end = min(first + kTokens, p.key_end);
  if (first >= seen) {
    for (int64_t s = first + threadIdx.x; p.fill_masked && s < end; s += kThreads) {
      logits[s] = -INFINITY;
    }
    return;
  }
  const int32_t* pages = p.rows.page_tables + p.rows.seq_of_row[row] * p.rows.page_table_stride;
  const auto* keys = static_cast<const uint8_t*>(p.key_data);
  const int depth = p.keys.index_head_dim, num_heads = p.index_n_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int token = threadIdx.x / kHeadGroups * 4, head = threadIdx.x % kHeadGroups * 4;
  // The warp's tokens of the tile: warp, warp + 4, ...; null where the row sees none.
  const auto key_of = [&](int i) -> const uint8_t* {
    const int64_t s = first + i;
    if (s >= seen || s >= end) return nullptr;
    return keys + int64_t{pages[s / p.keys.page_size]} * p.page_stride_bytes +
           s % p.keys.page_size * p.keys.row_bytes();
  };
  float total[4] = {};
  for (int from_head = 0; from_head < num_heads; from_head += kHeads) {
    float sum[4][4] = {};
    for (int from = 0; from < depth; from += kDepth) {
      const int channel = from + lane;
      __syncthreads();
      for (int i = warp; i < kTokens; i += kThreads / 32) {
        const uint8_t* key = key_of(i);
        tiles.k[lane][i] =
            key != nullptr && channel < depth ? load_value<kLayout>(key, channel) : 0.0f;
      }
      for (int i = warp; i < kHeads; i += kThreads / 32) {
        const bool in = from_head + i < num_heads && channel < depth;
        tiles.q[lane][i] =
            in ? load_value<kLayout>(p.q, (row * num_heads + from_head + i) * depth + channel)
               : 0.0f;
      }
      __syncthreads();
#pragma unroll 8
      for (int d = 0; d < kDepth; ++d) {
        const float4 a = *reinterpret_cast<const float4*>(&tiles.k[d][token]);
        const float4 b = *reinterpret_cast<const float4*>(&tiles.q[d][head]);
        const float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int h = 0; h < 4; ++h) sum[i][h] = fmaf(x[i], y[h], sum[i][h]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      if (from_head + head + h >= num_heads) break;
      const float weight = p.head_weights[row * num_heads + from_head + head + h];
#pragma unroll
      for (int i = 0; i < 4; ++i) total[i] = fmaf(fmaxf(sum[i][h], 0.0f), weight, total[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) tiles.sums[threadIdx.x % kHeadGroups][token + i] = total[i];
  __syncthreads();
  const int64_t s = first + threadIdx.x;
  if (threadIdx.x >= kTokens || s >= end) return;
  if (s >= seen) {
    if (p.fill_masked) logits[s] = -INFINITY;
    return;
  }
  float value = 0;
#pragma unroll
  for (int g = 0; g < kHeadGroups; ++g) value += tiles.sums[g][threadIdx.x];
  if constexpr (kLayout == IndexKeyLayout::kFp8_132) {
    const uint8_t* page = keys + int64_t{pages[s / p.keys.page_size]} * p.page_stride_bytes;
    value *= *reinterpret_cast<const float*>(page + p.keys.page_scales_offset() +
                                             s % p.keys.page_size * 4);
  }
  logits[s] = value;
}

}  // namespace

cudaError_t index_logits(const IndexLogitsParams& params, cudaStream_t stream) {
  if (params.rows.num_rows == 0 || params.key_end <= params.key_begin) return cudaSuccess;
  if (params.index_n_heads < 1 || params.keys.index_head_dim < 1) return cudaErrorInvalidValue;
  const int64_t tiles = (params.key_end - params.key_begin + kTokens - 1) / kTokens;
  const int64_t blocks = params.rows.num_rows * tiles;
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  const auto grid = static_cast<unsigned>(blocks);
  switch (params.keys.layout) {
    case IndexKeyLayout::kF32:
      index_logits_kernel<IndexKeyLayout::kF32><<<grid, kThreads, 0, stream>>>(params, tiles);
      break;
    case IndexKeyLayout::kBf16_256:
      index_logits_kernel<IndexKeyLayout::kBf16_256><<<grid, kThreads, 0, stream>>>(params, tiles);
      break;
    case IndexKeyLayout::kFp8_132:
      index_logits_kernel<IndexKeyLayout::kFp8_132><<<grid, kThreads, 0, stream>>>(params, tiles);
      break;
    default:
      return cudaErrorNotSupported;
  }
  return cudaGetLastError();
}

}  // namespace winnow::kernels::portable
