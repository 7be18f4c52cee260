// Latent rows: one warp normalises, rotates, rounds and stores one row; every value is read and
// written once.
#include "kernels/portable/warp_row.cuh"

namespace winnow::kernels::portable {

namespace {

using layout::LatentLayout;

constexpr int kWarps = 4;  // rows a block
constexpr int kChunk = 8;  // neighbouring channels of a lane

// kChunks: chunks of a lane, 256 channels a warp each.
template <typename T, LatentLayout kLayout, int kChunks>
__global__ void __launch_bounds__(kWarps * 32, kChunks == 4 ? 1 : 8)
    append_latent_kernel(const __grid_constant__ AppendLatentParams p) {
  const int64_t t = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  constexpr int kMaxPairs = kChunks == 4 ? 4 : 1;  // rotated pairs of a lane
  if (t >= p.rows.num_rows) return;
  const layout::LatentGeometry& g = p.geometry;
  const int32_t width = g.kv_lora_rank;
  const T* kv = static_cast<const T*>(p.kv) + t * (width + g.qk_rope_head_dim);
  const int64_t slot = p.rows.write_slots[t];
  const int64_t position = p.rows.positions[t];
  const int32_t half = g.qk_rope_head_dim / 2;

  // All loads at once: what follows waits for memory only here.
  float v[kChunks][kChunk] = {}, weight[kChunks][kChunk] = {};
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int32_t c = (i * 32 + lane) * kChunk;
    if (c >= width) continue;
    load_values(kv + c, v[i]);
    load_values(p.norm_weight + c, weight[i]);
  }
  float pairs[kMaxPairs][2] = {}, cos[kMaxPairs] = {}, sin[kMaxPairs] = {};
#pragma unroll
  for (int j = 0; j < kMaxPairs; ++j) {
    const int32_t i = j * 32 + lane;
    if (i >= half) continue;
    pairs[j][0] = to_float(kv[width + 2 * i]);
    pairs[j][1] = to_float(kv[width + 2 * i + 1]);
    cos[j] = p.rope.cos[position * half + i];
    sin[j] = p.rope.sin[position * half + i];
  }
  if (slot < 0) return;

  float squares = 0;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
#pragma unroll
    for (int e = 0; e < kChunk; ++e) squares = fmaf(v[i][e], v[i][e], squares);
  }
  const float factor =
      1.0f / sqrtf(group_sum<32>(squares) / static_cast<float>(width) + p.norm_eps);
  float amax[kChunks];
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    amax[i] = 0;
#pragma unroll
    for (int e = 0; e < kChunk; ++e) {
      v[i][e] = v[i][e] * factor * weight[i][e];
      amax[i] = fmaxf(amax[i], fabsf(v[i][e]));
    }
  }

  const int64_t page = slot / g.page_size, offset = slot % g.page_size;
  uint8_t* page_data = static_cast<uint8_t*>(p.cache) + page * p.page_stride_bytes;
  uint8_t* row = page_data + offset * g.row_bytes();
  float row_scale = p.scale;
  if constexpr (kLayout == LatentLayout::kFp8_644) {
    float most = amax[0];
#pragma unroll
    for (int i = 1; i < kChunks; ++i) most = fmaxf(most, amax[i]);
    row_scale = e4m3_scale(group_max<32>(most));
    if (lane == 0) {
      *reinterpret_cast<float*>(page_data + g.page_scales_offset() + 4 * offset) = row_scale;
    }
  }
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int32_t c = (i * 32 + lane) * kChunk;
    float scale = row_scale;
    if constexpr (kLayout == LatentLayout::kFp8_656) {
      constexpr int kGroupLanes = layout::kScaleGroup / kChunk;
      scale = e4m3_scale(group_max<kGroupLanes>(amax[i]));
      if (lane % kGroupLanes == 0 && c < width) {
        *reinterpret_cast<float*>(row + g.row_scales_offset() + c / layout::kScaleGroup * 4) =
            scale;
      }
    }
    if (c >= width) continue;
    if constexpr (kLayout == LatentLayout::kF32) {
      store_f32(row + 4 * c, v[i]);
    } else if constexpr (kLayout == LatentLayout::kBf16_1152) {
      store_bf16(row + 2 * c, v[i]);
    } else {
      store_e4m3(row + c, v[i], scale);
    }
  }

#pragma unroll
  for (int j = 0; j < kMaxPairs; ++j) {
    const int32_t i = j * 32 + lane;
    if (i >= half) continue;
    const float a = pairs[j][0], b = pairs[j][1];
    const float rotated[2] = {a * cos[j] - b * sin[j], b * cos[j] + a * sin[j]};
    if constexpr (kLayout == LatentLayout::kF32) {
      store_f32(row + g.rope_offset() + 8 * i, rotated);
    } else if constexpr (kLayout == LatentLayout::kFp8_576) {
      store_e4m3(row + g.rope_offset() + 2 * i, rotated, p.scale);
    } else {
      store_bf16(row + g.rope_offset() + 4 * i, rotated);
    }
  }
}

template <typename T, LatentLayout kLayout>
cudaError_t launch(const AppendLatentParams& p, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((p.rows.num_rows + kWarps - 1) / kWarps);
  const int32_t width = p.geometry.kv_lora_rank;
  if (width <= 512 && p.geometry.qk_rope_head_dim <= 64) {
    append_latent_kernel<T, kLayout, 2><<<blocks, kWarps * 32, 0, stream>>>(p);
  } else {
    append_latent_kernel<T, kLayout, 4><<<blocks, kWarps * 32, 0, stream>>>(p);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t launch(const AppendLatentParams& p, cudaStream_t stream) {
  switch (p.geometry.layout) {
    case LatentLayout::kF32:
      return launch<T, LatentLayout::kF32>(p, stream);
    case LatentLayout::kBf16_1152:
      return launch<T, LatentLayout::kBf16_1152>(p, stream);
    case LatentLayout::kFp8_656:
      return launch<T, LatentLayout::kFp8_656>(p, stream);
    case LatentLayout::kFp8_644:
      return launch<T, LatentLayout::kFp8_644>(p, stream);
    case LatentLayout::kFp8_576:
      return launch<T, LatentLayout::kFp8_576>(p, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t append_latent(const AppendLatentParams& p, cudaStream_t stream) {
  const layout::LatentGeometry& g = p.geometry;
  if (p.rows.num_rows == 0) return cudaSuccess;
  if (g.kv_lora_rank % kChunk != 0 || g.kv_lora_rank > 1024 || g.qk_rope_head_dim % 2 != 0 ||
      g.qk_rope_head_dim > 256 || p.rope.dim != g.qk_rope_head_dim ||
      p.page_stride_bytes % 4 != 0) {
    return cudaErrorInvalidValue;
  }
  return p.activation == Activation::kBf16 ? launch<__nv_bfloat16>(p, stream)
                                           : launch<float>(p, stream);
}

}  // namespace winnow::kernels::portable
