// Paged caches as bytes on the host: rows of a batch over shuffled pages, and encoders and decoders
// of every layout written from the layout's description alone (they share nothing with a backend).
#pragma once

#include <cstdint>
#include <vector>

#include "layout/kv_layout.h"
#include "ops/attention_ops.h"
#include "testing/case_random.h"

namespace winnow::testing {

// Rows first_position .. first_position + num_rows - 1 of one sequence.
struct SequenceRows {
  int32_t first_position = 0;
  int32_t num_rows = 0;
};

struct PagedRows {
  int32_t page_size = 64;
  int32_t num_pages = 0;
  int64_t page_table_stride = 0;
  std::vector<int32_t> positions, write_slots, seq_of_row, page_tables;

  ops::BatchRows view() const;
  int32_t num_rows() const { return static_cast<int32_t>(positions.size()); }
  int32_t slot(int64_t seq, int64_t position) const;
  int64_t row_slot(int64_t row, int64_t position) const {
    return slot(seq_of_row[static_cast<size_t>(row)], position);
  }
};

// Pages are dealt out in shuffled order from a pool with spare pages; unused table entries hold
// numbers that are no page.
PagedRows make_paged_rows(const std::vector<SequenceRows>& seqs,
                          int32_t page_size,
                          int32_t spare_pages,
                          uint64_t seed);

// Bytes of a cache whose every byte is 0xff (NaN in each format) until written.
struct LatentBytes {
  layout::LatentGeometry geometry;
  int64_t page_stride_bytes = 0;
  int32_t num_pages = 0;
  float scale = 1.0f;
  std::vector<uint8_t> bytes;

  LatentBytes(const layout::LatentGeometry& geometry,
              int32_t num_pages,
              int64_t padding_bytes,
              float scale = 1.0f);
  void write(int64_t slot, const std::vector<float>& values);  // C + R
  std::vector<double> read(int64_t slot) const;
  ops::LatentCache view(void* data) const;
};

struct IndexKeyBytes {
  layout::IndexKeyGeometry geometry;
  int64_t page_stride_bytes = 0;
  int32_t num_pages = 0;
  std::vector<uint8_t> bytes;

  IndexKeyBytes(const layout::IndexKeyGeometry& geometry, int32_t num_pages, int64_t padding_bytes);
  void write(int64_t slot, const std::vector<float>& values);  // D
  std::vector<double> read(int64_t slot) const;
  ops::IndexKeyCache view(void* data) const;
};

// Writes random values at every position that some row of the batch may see.
void fill(LatentBytes& cache, const PagedRows& rows, uint64_t seed);
void fill(IndexKeyBytes& cache, const PagedRows& rows, uint64_t seed);

}  // namespace winnow::testing
