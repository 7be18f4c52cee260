// Host seams of what a step writes before attention: latent rows and index keys into their paged
// caches, and the index queries. Pointers are device memory; nothing here allocates or waits.
// T rows, C kv_lora_rank, R qk_rope_head_dim, Hi index_n_heads, D index_head_dim.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "layout/kv_layout.h"

namespace winnow::kernels {

enum class Activation : uint8_t { kBf16, kF32 };

// Rows t with a write_slots[t] of -1 are skipped.
struct WriteRows {
  int32_t num_rows = 0;
  const int32_t* positions = nullptr;    // [T] row of the rope table
  const int32_t* write_slots = nullptr;  // [T] page * page_size + offset; queries need none
};

// cos and sin of position * frequency.
struct RopeView {
  const float* cos = nullptr;  // [max_positions, dim / 2]
  const float* sin = nullptr;  // [max_positions, dim / 2]
  int32_t dim = 0;
};

// [rms_norm(kv[:C]) | rope(kv[C:])], interleaved pairs, rounded to the layout.
struct AppendLatentParams {
  WriteRows rows;
  Activation activation = Activation::kBf16;
  const void* kv = nullptr;            // [T, C + R]
  const float* norm_weight = nullptr;  // [C]
  float norm_eps = 0;
  RopeView rope;
  layout::LatentGeometry geometry;  // C a multiple of 8 up to 1024; R even, up to 256
  void* cache = nullptr;            // [num_pages] pages, page_stride_bytes apart (a multiple of 4)
  int64_t page_stride_bytes = 0;
  float scale = 1;  // kFp8_576: value = e4m3 * scale
};

enum class IndexFormat : uint8_t { kF32, kBf16, kFp8 };

// How index queries and keys are rotated and rounded.
struct IndexRounding {
  bool rope_interleave = true;  // false: pairs (i, i + dim / 2)
  bool hadamard = false;        // times the Hadamard matrix, scaled by D^-0.5
  bool ue8m0_scales = false;    // fp8 scales rounded up to powers of two
};

// Rope on the first dims of each head, Hadamard, rounding;
// head_weights = gates * Hi^-0.5 * D^-0.5 * (fp8 scale of the head's query).
struct IndexQueryParams {
  WriteRows rows;
  Activation activation = Activation::kBf16;
  const void* q = nullptr;       // [T, Hi, D]
  const float* gates = nullptr;  // [T, Hi]
  RopeView rope;
  IndexRounding rounding;
  IndexFormat format = IndexFormat::kFp8;
  int32_t index_n_heads = 0;
  int32_t index_head_dim = 0;     // a power of two, 16 to 256
  void* q_out = nullptr;          // [T, Hi, D] in format
  float* head_weights = nullptr;  // [T, Hi]
};

// LayerNorm, rope on the first dims, Hadamard, rounding to the layout.
struct AppendIndexKeyParams {
  WriteRows rows;
  Activation activation = Activation::kBf16;
  const void* k = nullptr;             // [T, D]
  const float* norm_weight = nullptr;  // [D]
  const float* norm_bias = nullptr;    // [D]
  float norm_eps = 1e-6f;
  RopeView rope;
  IndexRounding rounding;
  layout::IndexKeyGeometry geometry;  // D a power of two, 16 to 256
  void* cache = nullptr;              // [num_pages] pages, page_stride_bytes apart
  int64_t page_stride_bytes = 0;      // a multiple of 4
};

namespace portable {

cudaError_t append_latent(const AppendLatentParams& params, cudaStream_t stream);
cudaError_t index_query(const IndexQueryParams& params, cudaStream_t stream);
cudaError_t append_index_key(const AppendIndexKeyParams& params, cudaStream_t stream);

}  // namespace portable

}  // namespace winnow::kernels
