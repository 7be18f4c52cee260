#include "testing/paged_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "layout/float_formats.h"

namespace winnow::testing {

namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;

void put_f32(uint8_t* to, float value) { std::memcpy(to, &value, 4); }
void put_bf16(uint8_t* to, float value) {
  const uint16_t bits = layout::f32_to_bf16(value);
  std::memcpy(to, &bits, 2);
}
double get_f32(const uint8_t* from) {
  float value;
  std::memcpy(&value, from, 4);
  return value;
}
double get_bf16(const uint8_t* from) {
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return layout::bf16_to_f32(bits);
}
float scale_of(const float* values, int64_t count) {
  float amax = 1e-4f;
  for (int64_t i = 0; i < count; ++i) amax = std::max(amax, std::fabs(values[i]));
  return amax / 448.0f;
}

}  // namespace

ops::BatchRows PagedRows::view() const {
  return {num_rows(),
          static_cast<int32_t>(page_tables.size() / static_cast<size_t>(page_table_stride)),
          nullptr,
          positions.data(),
          write_slots.data(),
          seq_of_row.data(),
          page_tables.data(),
          page_table_stride};
}

int32_t PagedRows::slot(int64_t seq, int64_t position) const {
  const int64_t page =
      page_tables[static_cast<size_t>(seq * page_table_stride + position / page_size)];
  return static_cast<int32_t>(page * page_size + position % page_size);
}

PagedRows make_paged_rows(const std::vector<SequenceRows>& seqs,
                          int32_t page_size,
                          int32_t spare_pages,
                          uint64_t seed) {
  PagedRows rows;
  rows.page_size = page_size;
  const auto pages_of = [&](const SequenceRows& s) {
    return layout::ceil_div(s.first_position + s.num_rows, page_size);
  };
  int64_t total = 0;
  for (const SequenceRows& s : seqs) {
    total += pages_of(s);
    rows.page_table_stride = std::max(rows.page_table_stride, pages_of(s) + 1);
  }
  rows.num_pages = static_cast<int32_t>(total) + spare_pages;
  std::vector<int32_t> pool(static_cast<size_t>(rows.num_pages));
  std::iota(pool.begin(), pool.end(), 0);
  CaseRandom(seed).shuffle(pool);
  rows.page_tables.assign(seqs.size() * static_cast<size_t>(rows.page_table_stride), -7'777'777);
  size_t dealt = 0;
  for (size_t seq = 0; seq < seqs.size(); ++seq) {
    for (int64_t p = 0; p < pages_of(seqs[seq]); ++p) {
      rows.page_tables[seq * static_cast<size_t>(rows.page_table_stride) + static_cast<size_t>(p)] =
          pool[dealt++];
    }
    for (int32_t i = 0; i < seqs[seq].num_rows; ++i) {
      const int32_t position = seqs[seq].first_position + i;
      rows.positions.push_back(position);
      rows.seq_of_row.push_back(static_cast<int32_t>(seq));
      rows.write_slots.push_back(rows.slot(static_cast<int64_t>(seq), position));
    }
  }
  return rows;
}

LatentBytes::LatentBytes(const layout::LatentGeometry& g,
                         int32_t pages,
                         int64_t padding_bytes,
                         float layer_scale)
    : geometry(g),
      page_stride_bytes(g.page_bytes() + padding_bytes),
      num_pages(pages),
      scale(layer_scale),
      bytes(static_cast<size_t>(pages * page_stride_bytes), 0xff) {}

ops::LatentCache LatentBytes::view(void* data) const {
  return {data, geometry, page_stride_bytes, num_pages, scale};
}

void LatentBytes::write(int64_t slot, const std::vector<float>& values) {
  const int64_t c = geometry.kv_lora_rank, r = geometry.qk_rope_head_dim, p = geometry.page_size;
  uint8_t* page = bytes.data() + slot / p * page_stride_bytes;
  const int64_t offset = slot % p;
  switch (geometry.layout) {
    case LatentLayout::kF32:
      for (int64_t i = 0; i < c + r; ++i) put_f32(page + (offset * (c + r) + i) * 4, values[i]);
      return;
    case LatentLayout::kBf16_1152:
      for (int64_t i = 0; i < c + r; ++i) put_bf16(page + (offset * (c + r) + i) * 2, values[i]);
      return;
    case LatentLayout::kFp8_656: {
      const int64_t groups = (c + 127) / 128;
      uint8_t* row = page + offset * (c + 4 * groups + 2 * r);
      for (int64_t g = 0; g < groups; ++g) {
        const float s = scale_of(&values[g * 128], std::min<int64_t>(128, c - g * 128));
        put_f32(row + c + 4 * g, s);
        for (int64_t i = g * 128; i < std::min(c, g * 128 + 128); ++i) {
          row[i] = layout::f32_to_e4m3(values[i] / s);
        }
      }
      for (int64_t i = 0; i < r; ++i) put_bf16(row + c + 4 * groups + 2 * i, values[c + i]);
      return;
    }
    case LatentLayout::kFp8_644: {
      uint8_t* row = page + offset * (c + 2 * r);
      const float s = scale_of(values.data(), c);
      put_f32(page + p * (c + 2 * r) + 4 * offset, s);
      for (int64_t i = 0; i < c; ++i) row[i] = layout::f32_to_e4m3(values[i] / s);
      for (int64_t i = 0; i < r; ++i) put_bf16(row + c + 2 * i, values[c + i]);
      return;
    }
    case LatentLayout::kFp8_576:
      for (int64_t i = 0; i < c + r; ++i) {
        page[offset * (c + r) + i] = layout::f32_to_e4m3(values[i] / scale);
      }
      return;
  }
}

std::vector<double> LatentBytes::read(int64_t slot) const {
  const int64_t c = geometry.kv_lora_rank, r = geometry.qk_rope_head_dim, p = geometry.page_size;
  const uint8_t* page = bytes.data() + slot / p * page_stride_bytes;
  const int64_t offset = slot % p;
  std::vector<double> values(static_cast<size_t>(c + r));
  for (int64_t i = 0; i < c + r; ++i) {
    double& v = values[static_cast<size_t>(i)];
    switch (geometry.layout) {
      case LatentLayout::kF32:
        v = get_f32(page + (offset * (c + r) + i) * 4);
        break;
      case LatentLayout::kBf16_1152:
        v = get_bf16(page + (offset * (c + r) + i) * 2);
        break;
      case LatentLayout::kFp8_656: {
        const int64_t groups = (c + 127) / 128;
        const uint8_t* row = page + offset * (c + 4 * groups + 2 * r);
        v = i < c ? layout::e4m3_to_f32(row[i]) * get_f32(row + c + 4 * (i / 128))
                  : get_bf16(row + c + 4 * groups + 2 * (i - c));
        break;
      }
      case LatentLayout::kFp8_644: {
        const uint8_t* row = page + offset * (c + 2 * r);
        v = i < c ? layout::e4m3_to_f32(row[i]) * get_f32(page + p * (c + 2 * r) + 4 * offset)
                  : get_bf16(row + c + 2 * (i - c));
        break;
      }
      case LatentLayout::kFp8_576:
        v = static_cast<double>(layout::e4m3_to_f32(page[offset * (c + r) + i])) * scale;
        break;
    }
  }
  return values;
}

IndexKeyBytes::IndexKeyBytes(const layout::IndexKeyGeometry& g,
                             int32_t pages,
                             int64_t padding_bytes)
    : geometry(g),
      page_stride_bytes(g.page_bytes() + padding_bytes),
      num_pages(pages),
      bytes(static_cast<size_t>(pages * page_stride_bytes), 0xff) {}

ops::IndexKeyCache IndexKeyBytes::view(void* data) const {
  return {data, geometry, page_stride_bytes, num_pages};
}

void IndexKeyBytes::write(int64_t slot, const std::vector<float>& values) {
  const int64_t d = geometry.index_head_dim, p = geometry.page_size;
  uint8_t* page = bytes.data() + slot / p * page_stride_bytes;
  const int64_t offset = slot % p;
  const float s = scale_of(values.data(), d);
  for (int64_t i = 0; i < d; ++i) {
    const int64_t at = offset * d + i;
    switch (geometry.layout) {
      case IndexKeyLayout::kNone:
        break;
      case IndexKeyLayout::kF32:
        put_f32(page + 4 * at, values[i]);
        break;
      case IndexKeyLayout::kBf16_256:
        put_bf16(page + 2 * at, values[i]);
        break;
      case IndexKeyLayout::kFp8_132:
        page[at] = layout::f32_to_e4m3(values[i] / s);
        break;
    }
  }
  if (geometry.layout == IndexKeyLayout::kFp8_132) put_f32(page + p * d + 4 * offset, s);
}

std::vector<double> IndexKeyBytes::read(int64_t slot) const {
  const int64_t d = geometry.index_head_dim, p = geometry.page_size;
  const uint8_t* page = bytes.data() + slot / p * page_stride_bytes;
  const int64_t offset = slot % p;
  std::vector<double> values(static_cast<size_t>(d));
  for (int64_t i = 0; i < d; ++i) {
    double& v = values[static_cast<size_t>(i)];
    const int64_t at = offset * d + i;
    switch (geometry.layout) {
      case IndexKeyLayout::kNone:
        break;
      case IndexKeyLayout::kF32:
        v = get_f32(page + 4 * at);
        break;
      case IndexKeyLayout::kBf16_256:
        v = get_bf16(page + 2 * at);
        break;
      case IndexKeyLayout::kFp8_132:
        v = layout::e4m3_to_f32(page[at]) * get_f32(page + p * d + 4 * offset);
        break;
    }
  }
  return values;
}

namespace {

template <typename Cache>
void fill_visible(Cache& cache, const PagedRows& rows, int64_t width, uint64_t seed) {
  std::vector<int32_t> lengths(
      rows.page_tables.size() / static_cast<size_t>(rows.page_table_stride), 0);
  for (size_t t = 0; t < rows.positions.size(); ++t) {
    int32_t& length = lengths[static_cast<size_t>(rows.seq_of_row[t])];
    length = std::max(length, rows.positions[t] + 1);
  }
  for (size_t seq = 0; seq < lengths.size(); ++seq) {
    for (int32_t s = 0; s < lengths[seq]; ++s) {
      // By sequence and position alone: another page placement gets the same values.
      CaseRandom random(seed + 1'000'003 * seq + static_cast<uint64_t>(s));
      cache.write(rows.slot(static_cast<int64_t>(seq), s), random.bf16_normals(width));
    }
  }
}

}  // namespace

void fill(LatentBytes& cache, const PagedRows& rows, uint64_t seed) {
  fill_visible(cache, rows, cache.geometry.kv_lora_rank + cache.geometry.qk_rope_head_dim, seed);
}
void fill(IndexKeyBytes& cache, const PagedRows& rows, uint64_t seed) {
  fill_visible(cache, rows, cache.geometry.index_head_dim, seed);
}

}  // namespace winnow::testing
