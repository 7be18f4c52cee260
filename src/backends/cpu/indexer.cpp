#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/index_keys.h"
#include "backends/cpu/index_numerics.h"
#include "base/error.h"

namespace winnow::backends {

void CpuBackend::index_query(const ops::IndexQueryArgs& args) {
  const int64_t heads = args.index_n_heads, dim = args.index_head_dim;
  check_numerics(args.numerics, args.rope, dim);
  const float factor = 1.0f / std::sqrt(static_cast<float>(heads * dim));
  const int64_t items = args.rows->num_rows * heads;
  for_items(items, items * dim * 16, [&](int64_t idx, int) {
    const int64_t begin = idx * dim;
    float head[kMaxIndexHeadDim];
    std::copy_n(static_cast<const float*>(args.q) + begin, dim, head);
    rotate_and_mix(head, dim, args.rope, args.rows->positions[idx / heads], args.numerics);
    float scale = 1.0f;
    switch (args.numerics.query_format) {
      case ops::IndexFormat::kF32:
        std::copy_n(head, dim, static_cast<float*>(args.q_out) + begin);
        break;
      case ops::IndexFormat::kBf16:
        for (int64_t i = 0; i < dim; ++i) {
          static_cast<uint16_t*>(args.q_out)[begin + i] = layout::f32_to_bf16(head[i]);
        }
        break;
      case ops::IndexFormat::kFp8:
        scale = index_scale(head, dim, args.numerics.ue8m0_scales);
        quantize_e4m3(head, dim, scale, static_cast<uint8_t*>(args.q_out) + begin);
        break;
    }
    args.head_weights[idx] = args.gates[idx] * factor * scale;
  });
}

namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
// Keys of one work item, and rows of one sequence that share its unpacked keys.
constexpr int64_t kKeysPerItem = 1024;
constexpr int64_t kRowsPerGroup = 16;

// Index logits of some rows of a batch. Result row i belongs to batch row row_at(i).
struct KeyScoring {
  const ops::IndexLogitsArgs& args;
  const KernelTable& kernels;
  const int32_t* row_list;  // null: every row
  bool fill_rest;           // write the -inf of columns behind the row's position
  const float* queries;     // of result rows from first_row, by transpose_rows
  int64_t first_row;

  int64_t row_at(int64_t i) const { return row_list != nullptr ? row_list[i] : i; }
  int64_t visible(int64_t i) const { return int64_t{args.rows->positions[row_at(i)]} + 1; }
  int64_t panel() const { return 2 * kernels.lanes; }
  int64_t num_panels() const { return layout::ceil_div(args.index_n_heads, panel()); }
  int64_t query_floats() const {
    return num_panels() * panel() * args.cache.geometry.index_head_dim;
  }
  const float* query(int64_t i) const { return queries + (i - first_row) * query_floats(); }
};

// Tokens [begin, end) of a sequence as runs within a page: visit(first slot, token, count).
template <typename Visit>
void visit_runs(
    const int32_t* pages, int64_t page_size, int64_t begin, int64_t end, const Visit& visit) {
  while (begin < end) {
    const int64_t page = begin / page_size, offset = begin - page * page_size;
    const int64_t count = std::min(end - begin, page_size - offset);
    visit(int64_t{pages[page]} * page_size + offset, begin, count);
    begin += count;
  }
}

// Unpacks keys [begin, end) of a sequence, and asks for those up to next_end.
void load_keys(const KeyScoring& scoring,
               const int32_t* pages,
               int64_t begin,
               int64_t end,
               int64_t next_end,
               ThreadScratch& scratch) {
  const ops::IndexKeyCache& cache = scoring.args.cache;
  const int64_t page_size = cache.geometry.page_size, dim = cache.geometry.index_head_dim;
  visit_runs(pages, page_size, begin, end, [&](int64_t slot, int64_t token, int64_t count) {
    read_index_keys(cache, slot, count, scoring.kernels,
                    scratch.latents.data() + (token - begin) * dim,
                    scratch.key_scales.data() + (token - begin));
  });
  visit_runs(pages, page_size, end, next_end, [&](int64_t slot, int64_t, int64_t count) {
    prefetch_index_keys(cache, slot, count);
  });
}

// One row against the unpacked keys; count of them are visible to it.
void score_row(
    const KeyScoring& scoring, int64_t i, int64_t column, int64_t count, ThreadScratch& scratch) {
  const int64_t heads = scoring.args.index_n_heads;
  const int64_t dim = scoring.args.cache.geometry.index_head_dim;
  const int64_t panel = scoring.panel(), stride = scoring.num_panels() * panel;
  scoring.kernels.product({.a = scratch.latents.data(),
                           .a_stride = dim,
                           .b = scoring.query(i),
                           .b_k_stride = panel,
                           .b_panel_stride = dim * panel,
                           .c = scratch.scores.data(),
                           .c_stride = stride,
                           .m = count,
                           .k = dim,
                           .num_panels = scoring.num_panels()});
  scoring.kernels.combine_heads(scratch.scores.data(), stride,
                                scoring.args.head_weights + scoring.row_at(i) * heads, heads,
                                scratch.key_scales.data(), count,
                                scoring.args.logits + i * scoring.args.logits_stride + column);
}

// Result rows [first, last) of one sequence against keys [begin, end).
void score_group(const KeyScoring& scoring,
                 int64_t first,
                 int64_t last,
                 int64_t begin,
                 int64_t end,
                 ThreadScratch& scratch) {
  const ops::IndexLogitsArgs& args = scoring.args;
  const int32_t* pages = args.rows->page_tables + args.rows->seq_of_row[scoring.row_at(first)] *
                                                      args.rows->page_table_stride;
  int64_t longest = 0;
  for (int64_t i = first; i < last; ++i) longest = std::max(longest, scoring.visible(i));
  const int64_t last_key = std::min(end, longest);
  for (int64_t tile = begin; tile < last_key; tile += kTokenTile) {
    const int64_t tile_end = std::min(last_key, tile + kTokenTile);
    load_keys(scoring, pages, tile, tile_end, std::min(last_key, tile_end + kTokenTile), scratch);
    for (int64_t i = first; i < last; ++i) {
      const int64_t count = std::min(tile_end, scoring.visible(i)) - tile;
      if (count > 0) score_row(scoring, i, tile - args.key_begin, count, scratch);
    }
  }
  if (!scoring.fill_rest) return;
  for (int64_t i = first; i < last; ++i) {
    float* row = args.logits + i * args.logits_stride - args.key_begin;
    std::fill(row + std::clamp(scoring.visible(i), begin, end), row + end, kMinusInf);
  }
}

// The queries of a result row as fp32, heads in lanes.
void unpack_queries(const KeyScoring& scoring, int64_t i, ThreadScratch& scratch, float* out) {
  const ops::IndexLogitsArgs& args = scoring.args;
  const int64_t dim = args.cache.geometry.index_head_dim, heads = args.index_n_heads;
  for (int64_t head = 0; head < heads; head += scoring.panel()) {
    const int64_t count = std::min(scoring.panel(), heads - head);
    const int64_t begin = (scoring.row_at(i) * heads + head) * dim;
    const float* rows = scratch.latents.data();
    switch (args.query_format) {
      case ops::IndexFormat::kF32:
        rows = static_cast<const float*>(args.q) + begin;
        break;
      case ops::IndexFormat::kBf16:
        scoring.kernels.unpack_bf16(static_cast<const uint16_t*>(args.q) + begin, count * dim,
                                    scratch.latents.data());
        break;
      case ops::IndexFormat::kFp8:
        scoring.kernels.unpack_e4m3(static_cast<const uint8_t*>(args.q) + begin, count * dim, 1.0f,
                                    scratch.latents.data());
        break;
    }
    scoring.kernels.transpose_rows(rows, dim, count, dim, out + head * dim);
  }
}

}  // namespace

void CpuBackend::score_keys(const ops::IndexLogitsArgs& args,
                            const int32_t* row_list,
                            int64_t num_rows,
                            bool fill_rest) {
  const int64_t width = args.index_n_heads * args.cache.geometry.index_head_dim;
  const int64_t keys = args.key_end - args.key_begin;
  WINNOW_CHECK(workspace_.prepared && args.index_n_heads <= workspace_.shape.index_n_heads &&
                   args.cache.geometry.index_head_dim <= workspace_.shape.index_head_dim,
               "index heads {} x {}", args.index_n_heads, args.cache.geometry.index_head_dim);
  float* queries = workspace_.index_queries.data();
  KeyScoring scoring{args, kernels_, row_list, fill_rest, queries, 0};
  const int64_t chunk =
      static_cast<int64_t>(workspace_.index_queries.size()) / scoring.query_floats();
  int32_t* groups = workspace_.row_groups.data();
  for (int64_t first = 0; first < num_rows; first += chunk) {
    const int64_t last = std::min(num_rows, first + chunk);
    scoring.first_row = first;
    for_items(last - first, (last - first) * width, [&](int64_t i, int thread_idx) {
      unpack_queries(scoring, first + i, scratch_of(thread_idx),
                     queries + i * scoring.query_floats());
    });
    int64_t num_groups = 0;
    for (int64_t i = first; i < last; ++i) {
      const bool starts =
          i == first || i - groups[num_groups - 1] >= kRowsPerGroup ||
          args.rows->seq_of_row[scoring.row_at(i)] != args.rows->seq_of_row[scoring.row_at(i - 1)];
      if (starts) groups[num_groups++] = static_cast<int32_t>(i);
    }
    groups[num_groups] = static_cast<int32_t>(last);
    const int64_t parts = layout::ceil_div(keys, kKeysPerItem);
    for_items(num_groups * parts, (last - first) * keys * width, [&](int64_t item, int thread_idx) {
      const int64_t group = item / parts;
      const int64_t begin = args.key_begin + item % parts * kKeysPerItem;
      score_group(scoring, groups[group], groups[group + 1], begin,
                  std::min(args.key_end, begin + kKeysPerItem), scratch_of(thread_idx));
    });
  }
}

void CpuBackend::index_logits(const ops::IndexLogitsArgs& args) {
  score_keys(args, nullptr, args.rows->num_rows, true);
}

}  // namespace winnow::backends
