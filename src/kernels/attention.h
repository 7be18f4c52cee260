// Host seam of the attention kernels: plain structs, a plan made once a batch, launches on a
// stream. Widths are fixed: kv_lora_rank 512, qk_rope_head_dim 64, page_size 64. All launches can
// be captured in a graph: no host synchronisation, no allocation.
#pragma once

#include <cstdint>

#include "layout/kv_layout.h"

struct CUstream_st;

namespace winnow::kernels {

using Stream = CUstream_st*;  // cudaStream_t

// out[t][h] = sum_j softmax_j(softmax_scale * (q_latent . c_j + q_rope . k_j)) * c_j over the row's
// slots. Entries of -1 and slots beyond the pool are skipped; a row without any gives zeros and
// lse = -inf. Bytes of the cache that no valid slot names are never used, NaN included. With more
// than 8 heads (16 of kFp8_644), or in groups, latent channels of kFp8_656 and kFp8_644 are widened
// to f16: values beyond +-4,088 are out of range there (latents are RMS-normed: far below).
struct SparseMlaParams {
  const void* q_latent = nullptr;  // bf16 [num_rows, num_heads, 512]
  const void* q_rope = nullptr;    // bf16 [num_rows, num_heads, 64]
  const int32_t* slots = nullptr;  // [num_rows, slots_stride]
  const int32_t* lens = nullptr;   // [num_rows] entries to read, 0..slots_stride
  int64_t slots_stride = 0;
  int32_t num_rows = 0;
  int32_t num_heads = 0;  // 1..128
  float softmax_scale = 0;
  const void* cache = nullptr;    // [num_pages] pages, page_stride_bytes apart, 16-byte aligned
  int64_t page_stride_bytes = 0;  // a multiple of 16
  int32_t num_pages = 0;
  float cache_scale = 1.0f;  // kFp8_576: value = e4m3 * scale
  void* out = nullptr;       // bf16 [num_rows, num_heads, 512]
  float* lse = nullptr;      // [num_rows, num_heads] natural log, or null
};

enum class SparseMlaKernel : uint8_t {
  kNone,  // the layout has no kernel here
  kFp8,   // e4m3 layouts: 8 or 16 heads a tile, tokens are the M side of products of e4m3
  kF16,   // e4m3 layouts: 16, 32 or 64 heads a tile, tokens are the M side, widened to f16
  kWide,  // bf16: 64 heads a tile, heads are the M side
};

// How a batch runs; the same for all layers. Each row's entries are cut into num_splits pieces of
// tokens_per_split, combined in order by a second launch when there is more than one.
// Many rows with few heads may share a gather: where group_rows > 0, group_rows neighbouring rows
// fill one tile of 64, if together they name few enough different slots. sparse_mla_groups decides
// that on the device, group by group; the other rows run one at a time, by `kernel`.
struct SparseMlaPlan {
  SparseMlaKernel kernel = SparseMlaKernel::kNone;
  layout::LatentLayout layout = layout::LatentLayout::kBf16_1152;
  int32_t head_tile = 64;
  int32_t num_splits = 1;
  int32_t tokens_per_split = 0;
  int32_t blocks = 1;         // thread blocks of a multiprocessor
  int32_t grid = 0;           // thread blocks in all
  bool fp8_query = false;     // queries are rounded to e4m3
  int32_t group_rows = 0;     // 8, 4 or 2; 0: every row alone
  int32_t group_limit = 0;    // most different slots of a group, a multiple of 64
  int32_t group_percent = 0;  // a group may have this many slots for 100 entries of its rows
  int32_t group_grid = 0;
  // The last rows, where they would not fill the grid once more, are cut into pieces all the same.
  int32_t tail_rows = 0;
  int32_t tail_splits = 0;
  int32_t tail_tokens_per_split = 0;
  int64_t workspace_bytes = 0;
};

namespace sm90 {

// batch_invariant: splits depend on max_tokens only and no rows share a gather, so that a row's
// bits depend neither on num_rows nor on its neighbours. Without it a row's bits also depend on the
// rows of its group (aligned runs of group_rows rows of the batch); the same batch gives the same
// bits.
// fp8_query: the queries may be rounded to e4m3, as servers do beside a kFp8_576 cache: each (row,
// head) by its own power of two, its largest magnitude at [2^7, 2^8). plan.fp8_query says whether
// they are: for kFp8_576 with more than 32 heads.
SparseMlaPlan plan_sparse_mla(layout::LatentLayout layout,
                              int32_t num_rows,
                              int32_t num_heads,
                              int32_t max_tokens,
                              int32_t num_multiprocessors,
                              bool batch_invariant,
                              bool fp8_query = false);

// Finds the groups; a no-op when plan.group_rows is 0. Call it once for a set of slots and lens,
// before the sparse_mla calls that use them (layers that share slots share it), with their params
// and workspace: the caches may differ, num_pages may not. Returns a cudaError_t as int.
int sparse_mla_groups(const SparseMlaParams& params,
                      const SparseMlaPlan& plan,
                      void* workspace,
                      Stream stream);

// workspace: plan.workspace_bytes, 256-byte aligned; may be shared by calls of one stream, but not
// between sparse_mla_groups and the calls that use its result. Returns a cudaError_t as int.
int sparse_mla(const SparseMlaParams& params,
               const SparseMlaPlan& plan,
               void* workspace,
               Stream stream);

}  // namespace sm90
}  // namespace winnow::kernels
