// Index logits and top-k over runs of rows that fit the workspace.
#include <algorithm>

#include "kernels/indexer.h"

namespace winnow::kernels::sm90 {

namespace {

// Runs of whole groups: no group of the many-rows kernel is cut. 16 rows: the group of 32 heads.
constexpr int64_t kRunRows = 16;

int64_t logits_stride(int64_t max_tokens) { return (max_tokens + 3) / 4 * 4; }

int64_t plan_bytes(int64_t rows) {
  const int64_t bytes = index_logits_workspace_bytes(static_cast<int32_t>(rows));
  return (bytes + 255) / 256 * 256;
}

// Rows whose logits and plan fit.
int64_t rows_that_fit(int64_t rows, int64_t max_tokens, int64_t bytes) {
  const int64_t row_bytes = 4 * logits_stride(max_tokens) + 8;
  const int64_t fit = std::min(rows, (bytes - 512) / row_bytes);
  return fit >= rows || fit < kRunRows ? fit : fit / kRunRows * kRunRows;
}

}  // namespace

int64_t select_tokens_workspace_bytes(int32_t max_rows, int64_t max_tokens, int64_t budget_bytes) {
  const int64_t rows = std::max<int64_t>(1, rows_that_fit(max_rows, max_tokens, budget_bytes));
  return plan_bytes(rows) + rows * 4 * logits_stride(max_tokens) + 512;
}

cudaError_t select_tokens(const SelectTokensParams& p, cudaStream_t stream) {
  const int64_t stride = logits_stride(p.max_tokens);
  const int64_t run = rows_that_fit(p.rows.num_rows, p.max_tokens, p.workspace_bytes);
  if (p.rows.num_rows == 0) return cudaSuccess;
  if (run < 1) return cudaErrorInvalidValue;
  auto* workspace = static_cast<uint8_t*>(p.workspace);
  auto* logits = reinterpret_cast<float*>(workspace + plan_bytes(run));
  const bool decode = p.rows.num_rows <= p.rows.num_seqs;
  for (int64_t first = 0; first < p.rows.num_rows; first += run) {
    RowsView rows = p.rows;
    rows.num_rows = static_cast<int32_t>(std::min(run, p.rows.num_rows - first));
    rows.num_seqs = decode ? rows.num_rows : std::min(p.rows.num_seqs, rows.num_rows - 1);
    rows.positions += first;
    rows.seq_of_row += first;
    if (p.max_tokens > p.topk) {
      const cudaError_t error = index_logits(
          {.rows = rows,
           .q = static_cast<const uint8_t*>(p.q) + first * p.index_n_heads * p.keys.index_head_dim,
           .head_weights = p.head_weights + first * p.index_n_heads,
           .index_n_heads = p.index_n_heads,
           .keys = p.keys,
           .key_data = p.key_data,
           .page_stride_bytes = p.page_stride_bytes,
           .num_pages = p.num_pages,
           .key_begin = 0,
           .key_end = p.max_tokens,
           .skip_tokens = p.topk,
           .fill_masked = false,
           .logits = logits,
           .logits_stride = stride,
           .workspace = workspace,
           .workspace_bytes = plan_bytes(run)},
          stream);
      if (error != cudaSuccess) return error;
    }
    const cudaError_t error = portable::topk({.rows = rows,
                                              .logits = logits,
                                              .logits_stride = stride,
                                              .max_tokens = p.max_tokens,
                                              .page_size = p.keys.page_size,
                                              .topk = p.topk,
                                              .slots = p.slots + first * p.topk,
                                              .lens = p.lens + first},
                                             stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace winnow::kernels::sm90
