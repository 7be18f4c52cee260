// Host seam of the attention kernels: plain structs, a plan made once a batch, launches on a stream.
// Widths are fixed: kv_lora_rank 512, qk_rope_head_dim 64, page_size 64. All launches can be
// captured in a graph: no host synchronisation, no allocation.
#pragma once

#include <cstdint>

#include "layout/kv_layout.h"

struct CUstream_st;

namespace winnow::kernels {

using Stream = CUstream_st*;  // cudaStream_t

// out[t][h] = sum_j softmax_j(softmax_scale * (q_latent . c_j + q_rope . k_j)) * c_j over the row's
// slots. Entries of -1 and slots beyond the pool are skipped; a row without any gives zeros and
// lse = -inf. Bytes of the cache that no valid slot names are never used, NaN included.
struct SparseMlaParams {
  const void* q_latent = nullptr;   // bf16 [num_rows, num_heads, 512]
  const void* q_rope = nullptr;     // bf16 [num_rows, num_heads, 64]
  const int32_t* slots = nullptr;   // [num_rows, slots_stride]
  const int32_t* lens = nullptr;    // [num_rows] entries to read, 0..slots_stride
  int64_t slots_stride = 0;
  int32_t num_rows = 0;
  int32_t num_heads = 0;            // 1..128
  float softmax_scale = 0;
  const void* cache = nullptr;      // [num_pages] pages, page_stride_bytes apart, 16-byte aligned
  int64_t page_stride_bytes = 0;    // a multiple of 16
  int32_t num_pages = 0;
  float cache_scale = 1.0f;         // kFp8_576: value = e4m3 * scale
  void* out = nullptr;              // bf16 [num_rows, num_heads, 512]
  float* lse = nullptr;             // [num_rows, num_heads] natural log, or null
};

enum class SparseMlaKernel : uint8_t {
  kNone,  // the layout has no kernel here
  kFp8,   // e4m3 layouts: 8, 16, 32 or 64 heads a tile, KV tokens are the M side of the product
  kWide,  // bf16 layout: 64 heads a tile, heads are the M side
};

// How a batch runs; the same for all layers. Each row's entries are cut into num_splits pieces of
// tokens_per_split, combined in order by a second launch when there is more than one.
struct SparseMlaPlan {
  SparseMlaKernel kernel = SparseMlaKernel::kNone;
  layout::LatentLayout layout = layout::LatentLayout::kBf16_1152;
  int32_t head_tile = 64;
  int32_t num_splits = 1;
  int32_t tokens_per_split = 0;
  int32_t blocks = 1;  // thread blocks of a multiprocessor
  int32_t grid = 0;    // thread blocks in all
  int64_t workspace_bytes = 0;
};

namespace sm90 {

// batch_invariant: splits depend on max_tokens only, so a row's bits do not depend on num_rows.
SparseMlaPlan plan_sparse_mla(layout::LatentLayout layout, int32_t num_rows, int32_t num_heads,
                              int32_t max_tokens, int32_t num_multiprocessors,
                              bool batch_invariant);

// workspace: plan.workspace_bytes, 16-byte aligned, may be shared by calls of one stream. Returns a
// cudaError_t as int.
int sparse_mla(const SparseMlaParams& params, const SparseMlaPlan& plan, void* workspace,
               Stream stream);

}  // namespace sm90
}  // namespace winnow::kernels
