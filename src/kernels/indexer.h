// Host seams of the token selection: index logits, top-k, and the two in one. Pointers are device
// memory; nothing here allocates, waits or reads device memory on the host, so that every call can
// be captured in a graph.
// T rows, Hi index_n_heads, D index_head_dim, K topk.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "layout/kv_layout.h"

namespace winnow::kernels {

// The part of a batch that selection needs. Row t sees tokens 0..positions[t] of its sequence; a
// position of -1 sees nothing.
struct RowsView {
  int32_t num_rows = 0;
  int32_t num_seqs = 0;  // num_rows of them or fewer: decode; else neighbours share a sequence
  const int32_t* positions = nullptr;    // [T]
  const int32_t* seq_of_row = nullptr;   // [T] row of page_tables
  const int32_t* page_tables = nullptr;  // [num_seqs, page_table_stride] page ids
  int64_t page_table_stride = 0;
};

struct TopkParams {
  RowsView rows;
  const float* logits = nullptr;  // [T, logits_stride], column s is token s
  int64_t logits_stride = 0;
  int64_t max_tokens = 0;  // no row sees more tokens; 0: logits_stride
  int32_t page_size = 64;
  int32_t topk = 0;          // 1..2048
  int32_t* slots = nullptr;  // [T, K] in position order, then -1
  int32_t* lens = nullptr;   // [T] min(position + 1, K)
};

// logits[t][s - key_begin] = scale[s] * sum_h relu(q[t][h] . k[s]) * head_weights[t][h] for
// key_begin <= s < min(key_end, position + 1), fp32.
struct IndexLogitsParams {
  RowsView rows;
  const void* q = nullptr;              // [T, Hi, D]; e4m3, bf16 or f32, as the keys are
  const float* head_weights = nullptr;  // [T, Hi], 8-byte aligned
  int32_t index_n_heads = 0;
  layout::IndexKeyGeometry keys;
  const void* key_data = nullptr;  // [num_pages] pages, page_stride_bytes apart
  int64_t page_stride_bytes = 0;   // a multiple of 16
  int32_t num_pages = 0;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  int32_t skip_tokens = 0;  // rows that see no more tokens than this need no logits
  bool fill_masked = true;  // write -inf to the columns that a row does not see
  float* logits = nullptr;  // [T, logits_stride]
  int64_t logits_stride = 0;
  void* workspace = nullptr;  // index_logits_workspace_bytes(T)
  int64_t workspace_bytes = 0;
};

// Index logits and top-k in one. The logits live in the workspace, as many rows at a time as fit.
struct SelectTokensParams {
  RowsView rows;
  const void* q = nullptr;  // as in IndexLogitsParams
  const float* head_weights = nullptr;
  int32_t index_n_heads = 0;
  layout::IndexKeyGeometry keys;
  const void* key_data = nullptr;
  int64_t page_stride_bytes = 0;
  int32_t num_pages = 0;
  int64_t max_tokens = 0;  // no row sees more tokens
  int32_t topk = 0;
  int32_t* slots = nullptr;  // [T, K] in position order, then -1
  int32_t* lens = nullptr;   // [T] min(position + 1, K)
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;  // select_tokens_workspace_bytes(T, max_tokens, budget)
};

namespace sm90 {

int64_t index_logits_workspace_bytes(int32_t max_rows);
// 132-byte pages of 64 keys with D = 128, Hi a multiple of 8 up to 128; cudaErrorNotSupported for
// anything else.
cudaError_t index_logits(const IndexLogitsParams& params, cudaStream_t stream);

// What select_tokens can use of a budget: never more than the budget, unless one row needs more.
int64_t select_tokens_workspace_bytes(int32_t max_rows, int64_t max_tokens, int64_t budget_bytes);
cudaError_t select_tokens(const SelectTokensParams& params, cudaStream_t stream);

}  // namespace sm90

namespace portable {

// Any layout, page size, Hi and D, on the plain cores; no workspace. Rows x 64-token tiles below
// 2^31.
cudaError_t index_logits(const IndexLogitsParams& params, cudaStream_t stream);

// Rows of up to 1,048,576 tokens. Rows with position + 1 <= K read no logits.
cudaError_t topk(const TopkParams& params, cudaStream_t stream);

}  // namespace portable

}  // namespace winnow::kernels
