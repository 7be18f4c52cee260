// Index queries and keys: a group of lanes rotates, mixes and rounds one vector of D values.
#include <type_traits>

#include "kernels/portable/warp_row.cuh"

namespace winnow::kernels::portable {

namespace {

using layout::IndexKeyLayout;

constexpr int kThreads = 128;

// Values lane * kEach .. of a vector of kDim. All lanes of a warp take part, also those whose
// vector does not exist: they work on the last one and store nothing.
template <int kDim>
struct Vector {
  static constexpr int kEach = kDim >= 128 ? 8 : kDim > 32 ? kDim / 32 : 1;
  static constexpr int kLanes = kDim / kEach;
  static constexpr int kPerBlock = kThreads / kLanes;
  float v[kEach];

  __device__ static int64_t index() {
    return int64_t{blockIdx.x} * kPerBlock + threadIdx.x / kLanes;
  }
  __device__ static int lane() { return threadIdx.x % kLanes; }

  // LayerNorm with its own eps and bias: the variance around the mean in a second pass.
  __device__ void layer_norm(const float* weight, const float* bias, float eps) {
    float w[kEach], b[kEach];
    load_values(weight + lane() * kEach, w);
    load_values(bias + lane() * kEach, b);
    float sum = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) sum += v[e];
    const float mean = group_sum<kLanes>(sum) / static_cast<float>(kDim);
    float squares = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      v[e] -= mean;
      squares = fmaf(v[e], v[e], squares);
    }
    const float factor = 1.0f / sqrtf(group_sum<kLanes>(squares) / static_cast<float>(kDim) + eps);
#pragma unroll
    for (int e = 0; e < kEach; ++e) v[e] = v[e] * factor * w[e] + b[e];
  }

  __device__ void rotate_interleaved(const float* cos, const float* sin, int32_t dim) {
    const int32_t first = lane() * kEach;
    if constexpr (kEach == 1) {
      const float other = __shfl_xor_sync(~0u, v[0], 1);
      if (first >= dim) return;
      const float c = cos[first / 2], s = sin[first / 2];
      v[0] = first % 2 == 0 ? v[0] * c - other * s : v[0] * c + other * s;
    } else {
      if (first >= dim) return;
#pragma unroll
      for (int e = 0; e < kEach; e += 2) {
        if (first + e >= dim) break;
        const float c = cos[(first + e) / 2], s = sin[(first + e) / 2];
        const float a = v[e], b = v[e + 1];
        v[e] = a * c - b * s;
        v[e + 1] = b * c + a * s;
      }
    }
  }

  // dim / 2 is a multiple of kEach: pairs lie in the same place of two lanes.
  __device__ void rotate_half_split(const float* cos, const float* sin, int32_t dim) {
    const int32_t half = dim / 2, lanes = half / kEach, first = lane() * kEach;
    const bool low = first < half;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int self = threadIdx.x % 32;
      const float other = __shfl_sync(~0u, v[e], low ? self + lanes : self - lanes);
      if (first >= dim) continue;
      const int32_t i = first + e - (low ? 0 : half);
      const float c = cos[i], s = sin[i];
      v[e] = low ? v[e] * c - other * s : v[e] * c + other * s;
    }
  }

  // Natural-order Sylvester matrix, neighbours first.
  __device__ void hadamard() {
#pragma unroll
    for (int step = 1; step < kEach; step *= 2) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if ((e & step) != 0) continue;
        const float a = v[e], b = v[e + step];
        v[e] = a + b;
        v[e + step] = a - b;
      }
    }
#pragma unroll
    for (int step = 1; step < kLanes; step *= 2) {
      const bool upper = (lane() & step) != 0;
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const float other = __shfl_xor_sync(~0u, v[e], step);
        v[e] = upper ? other - v[e] : v[e] + other;
      }
    }
    const float norm = 1.0f / sqrtf(static_cast<float>(kDim));
#pragma unroll
    for (int e = 0; e < kEach; ++e) v[e] *= norm;
  }

  __device__ void rotate_and_mix(const RopeView& rope, const IndexRounding& r, int64_t position) {
    const float* cos = rope.cos + position * (rope.dim / 2);
    const float* sin = rope.sin + position * (rope.dim / 2);
    if (r.rope_interleave) {
      rotate_interleaved(cos, sin, rope.dim);
    } else {
      rotate_half_split(cos, sin, rope.dim);
    }
    if (r.hadamard) hadamard();
  }

  __device__ float scale(bool ue8m0) const {
    float amax = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) amax = fmaxf(amax, fabsf(v[e]));
    const float s = e4m3_scale(group_max<kLanes>(amax));
    return ue8m0 ? ceil_to_power_of_two(s) : s;
  }
};

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    index_query_kernel(const __grid_constant__ IndexQueryParams p, float factor) {
  using Query = Vector<kDim>;
  const int64_t count = int64_t{p.rows.num_rows} * p.index_n_heads;
  const bool exists = Query::index() < count;
  const int64_t idx = exists ? Query::index() : count - 1;
  const int first = Query::lane() * Query::kEach;
  Query q;
  load_values(static_cast<const T*>(p.q) + idx * kDim + first, q.v);
  const float gate = p.gates[idx];
  q.rotate_and_mix(p.rope, p.rounding, p.rows.positions[idx / p.index_n_heads]);
  float scale = 1;
  if (p.format == IndexFormat::kFp8) scale = q.scale(p.rounding.ue8m0_scales);
  if (!exists) return;
  uint8_t* out = static_cast<uint8_t*>(p.q_out);
  switch (p.format) {
    case IndexFormat::kF32:
      store_f32(out + 4 * (idx * kDim + first), q.v);
      break;
    case IndexFormat::kBf16:
      store_bf16(out + 2 * (idx * kDim + first), q.v);
      break;
    case IndexFormat::kFp8:
      store_e4m3(out + idx * kDim + first, q.v, scale);
      break;
  }
  if (first == 0) p.head_weights[idx] = gate * factor * scale;
}

template <typename T, int kDim>
__global__ void __launch_bounds__(kThreads)
    append_index_key_kernel(const __grid_constant__ AppendIndexKeyParams p) {
  using Key = Vector<kDim>;
  const bool exists = Key::index() < p.rows.num_rows;
  const int64_t t = exists ? Key::index() : p.rows.num_rows - 1;
  const int first = Key::lane() * Key::kEach;
  Key k;
  load_values(static_cast<const T*>(p.k) + t * kDim + first, k.v);
  const int64_t slot = p.rows.write_slots[t];
  const int64_t position = p.rows.positions[t];
  k.layer_norm(p.norm_weight, p.norm_bias, p.norm_eps);
  k.rotate_and_mix(p.rope, p.rounding, position);
  const layout::IndexKeyGeometry& g = p.geometry;
  const float scale =
      g.layout == IndexKeyLayout::kFp8_132 ? k.scale(p.rounding.ue8m0_scales) : 1.0f;
  if (!exists || slot < 0) return;
  const int64_t page = slot / g.page_size, offset = slot % g.page_size;
  uint8_t* page_data = static_cast<uint8_t*>(p.cache) + page * p.page_stride_bytes;
  uint8_t* row = page_data + offset * g.row_bytes();
  switch (g.layout) {
    case IndexKeyLayout::kNone:
      break;
    case IndexKeyLayout::kF32:
      store_f32(row + 4 * first, k.v);
      break;
    case IndexKeyLayout::kBf16_256:
      store_bf16(row + 2 * first, k.v);
      break;
    case IndexKeyLayout::kFp8_132:
      store_e4m3(row + first, k.v, scale);
      if (first == 0) {
        *reinterpret_cast<float*>(page_data + g.page_scales_offset() + 4 * offset) = scale;
      }
      break;
  }
}

// Calls f with the dimension as a type; false: not one of the offered.
template <typename F>
bool with_dim(int32_t dim, F&& f) {
  switch (dim) {
    case 16:
      f(std::integral_constant<int, 16>{});
      return true;
    case 32:
      f(std::integral_constant<int, 32>{});
      return true;
    case 64:
      f(std::integral_constant<int, 64>{});
      return true;
    case 128:
      f(std::integral_constant<int, 128>{});
      return true;
    case 256:
      f(std::integral_constant<int, 256>{});
      return true;
    default:
      return false;
  }
}

bool rope_fits(const RopeView& rope, int32_t dim) {
  const int32_t each = dim >= 128 ? 8 : dim > 32 ? dim / 32 : 1;
  return rope.dim % 2 == 0 && rope.dim <= dim && rope.dim / 2 % each == 0;
}

template <int kDim>
unsigned blocks_for(int64_t vectors) {
  return static_cast<unsigned>((vectors + Vector<kDim>::kPerBlock - 1) / Vector<kDim>::kPerBlock);
}

}  // namespace

cudaError_t index_query(const IndexQueryParams& p, cudaStream_t stream) {
  if (p.rows.num_rows == 0) return cudaSuccess;
  const int32_t dim = p.index_head_dim;
  if (!rope_fits(p.rope, dim)) return cudaErrorInvalidValue;
  const float factor = 1.0f / sqrtf(static_cast<float>(p.index_n_heads * dim));
  const bool offered = with_dim(dim, [&](auto d) {
    const unsigned blocks = blocks_for<d.value>(int64_t{p.rows.num_rows} * p.index_n_heads);
    if (p.activation == Activation::kBf16) {
      index_query_kernel<__nv_bfloat16, d.value><<<blocks, kThreads, 0, stream>>>(p, factor);
    } else {
      index_query_kernel<float, d.value><<<blocks, kThreads, 0, stream>>>(p, factor);
    }
  });
  return offered ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t append_index_key(const AppendIndexKeyParams& p, cudaStream_t stream) {
  if (p.rows.num_rows == 0) return cudaSuccess;
  const int32_t dim = p.geometry.index_head_dim;
  if (!rope_fits(p.rope, dim) || p.page_stride_bytes % 4 != 0) return cudaErrorInvalidValue;
  const bool offered = with_dim(dim, [&](auto d) {
    const unsigned blocks = blocks_for<d.value>(p.rows.num_rows);
    if (p.activation == Activation::kBf16) {
      append_index_key_kernel<__nv_bfloat16, d.value><<<blocks, kThreads, 0, stream>>>(p);
    } else {
      append_index_key_kernel<float, d.value><<<blocks, kThreads, 0, stream>>>(p);
    }
  });
  return offered ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace winnow::kernels::portable
