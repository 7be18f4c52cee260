#include "model/step_rows.h"

#include <algorithm>

#include "base/error.h"
#include "layout/kv_layout.h"

namespace winnow::model {

StepRows::StepRows(int32_t max_rows,
                   int32_t max_seqs,
                   int32_t max_context,
                   int32_t page_size,
                   ops::Backend& backend)
    : backend_(backend),
      page_size_(page_size),
      page_table_stride_(layout::ceil_div(max_context, page_size)),
      token_ids_(max_rows),
      positions_(max_rows),
      write_slots_(max_rows),
      seq_of_row_(max_rows),
      page_tables_(max_seqs * page_table_stride_),
      indices_(max_rows) {
  if (backend.reads_host_memory()) return;
  const auto bytes = [](const std::vector<int32_t>& v) {
    return static_cast<int64_t>(v.size()) * 4;
  };
  device_token_ids_ = backend.allocate(bytes(token_ids_));
  device_positions_ = backend.allocate(bytes(positions_));
  device_write_slots_ = backend.allocate(bytes(write_slots_));
  device_seq_of_row_ = backend.allocate(bytes(seq_of_row_));
  device_page_tables_ = backend.allocate(bytes(page_tables_));
  device_indices_ = backend.allocate(bytes(indices_));
}

void StepRows::clear() {
  num_rows_ = 0;
  num_seqs_ = 0;
}

int32_t StepRows::add(const RowSlice& slice) {
  const int32_t end = slice.start + slice.num_rows;
  WINNOW_CHECK(slice.num_rows >= 1 && static_cast<size_t>(end) <= slice.tokens.size(),
               "rows {} to {} of {} tokens", slice.start, end, slice.tokens.size());
  WINNOW_CHECK(static_cast<size_t>(num_rows_ + slice.num_rows) <= token_ids_.size(),
               "{} rows of {}", num_rows_ + slice.num_rows, token_ids_.size());
  const int64_t num_pages = layout::ceil_div(end, page_size_);
  WINNOW_CHECK(
      static_cast<size_t>(num_pages) <= slice.pages.size() && num_pages <= page_table_stride_,
      "{} pages needed, {} given, {} at most", num_pages, slice.pages.size(), page_table_stride_);
  WINNOW_CHECK((num_seqs_ + 1) * page_table_stride_ <= static_cast<int64_t>(page_tables_.size()),
               "{} sequences", num_seqs_ + 1);
  const int32_t first_row = num_rows_;
  std::copy_n(slice.pages.begin(), num_pages,
              page_tables_.begin() + num_seqs_ * page_table_stride_);
  for (int32_t position = slice.start; position < end; ++position) {
    const int32_t row = num_rows_++;
    token_ids_[row] = slice.tokens[position];
    positions_[row] = position;
    seq_of_row_[row] = num_seqs_;
    write_slots_[row] =
        position < slice.write_from
            ? -1
            : slice.pages[position / page_size_] * page_size_ + position % page_size_;
  }
  ++num_seqs_;
  return first_row;
}

const int32_t* StepRows::placed(const std::vector<int32_t>& host,
                                const Buffer& device,
                                int64_t count) {
  if (device.data() == nullptr) return host.data();
  backend_.upload(device.data(), host.data(), count * 4);
  return device.as<int32_t>();
}

ops::BatchRows StepRows::commit() {
  return {.num_rows = num_rows_,
          .num_seqs = num_seqs_,
          .token_ids = placed(token_ids_, device_token_ids_, num_rows_),
          .positions = placed(positions_, device_positions_, num_rows_),
          .write_slots = placed(write_slots_, device_write_slots_, num_rows_),
          .seq_of_row = placed(seq_of_row_, device_seq_of_row_, num_rows_),
          .page_tables = placed(page_tables_, device_page_tables_, num_seqs_ * page_table_stride_),
          .page_table_stride = page_table_stride_};
}

const int32_t* StepRows::commit_indices(std::span<const int32_t> row_idx) {
  WINNOW_CHECK(row_idx.size() <= indices_.size(), "{} indices", row_idx.size());
  std::copy(row_idx.begin(), row_idx.end(), indices_.begin());
  return placed(indices_, device_indices_, static_cast<int64_t>(row_idx.size()));
}

}  // namespace winnow::model
