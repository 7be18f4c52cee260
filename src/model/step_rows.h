// Builds the rows of one step from slices of sequences, in buffers made once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/backend.h"

namespace winnow::model {

// Tokens [start, start + num_rows) of one sequence.
struct RowSlice {
  std::span<const int32_t> tokens;  // the whole sequence, covers start + num_rows
  int32_t start = 0;
  int32_t num_rows = 0;
  int32_t write_from = 0;          // rows at positions below it append nothing
  std::span<const int32_t> pages;  // page ids in position order, cover start + num_rows
};

class StepRows {
 public:
  StepRows(int32_t max_rows,
           int32_t max_seqs,
           int32_t max_context,
           int32_t page_size,
           ops::Backend& backend);

  void clear();
  // Returns the index of the slice's first row.
  int32_t add(const RowSlice& slice);
  // The rows in backend memory, valid until the next clear().
  ops::BatchRows commit();
  // Copies row indices to backend memory for Decoder::logits; at most max_rows.
  const int32_t* commit_indices(std::span<const int32_t> row_idx);

  int32_t num_rows() const { return num_rows_; }

 private:
  const int32_t* placed(const std::vector<int32_t>& host, const Buffer& device, int64_t count);

  ops::Backend& backend_;
  const int32_t page_size_;
  const int64_t page_table_stride_;
  int32_t num_rows_ = 0;
  int32_t num_seqs_ = 0;
  // Host arrays; a backend that cannot read them gets copies in the buffers.
  std::vector<int32_t> token_ids_, positions_, write_slots_, seq_of_row_, page_tables_, indices_;
  Buffer device_token_ids_, device_positions_, device_write_slots_, device_seq_of_row_,
      device_page_tables_, device_indices_;
};

}  // namespace winnow::model
