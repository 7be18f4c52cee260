#include "backends/cpu/topk.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"

namespace winnow::backends {

namespace {

// Unsigned order equals score order; -0 equals +0, NaN equals -inf.
uint32_t order_key(float score) {
  auto bits = std::bit_cast<uint32_t>(score);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) bits = 0xff800000u;
  if (magnitude == 0) bits = 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

struct Threshold {
  uint32_t key = 0;  // key of the k-th best score
  int64_t ties = 0;  // how many scores of exactly that key are taken, lowest positions first
};

// Radix selection, one byte of the key a pass, most significant first.
Threshold find_threshold(const float* scores, int64_t count, int64_t k) {
  uint32_t prefix = 0, mask = 0;
  int64_t wanted = k;  // rank of the threshold among scores that share the prefix
  for (int shift = 24; shift >= 0; shift -= 8) {
    int64_t histogram[256] = {};
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = order_key(scores[i]);
      if ((key & mask) == prefix) ++histogram[(key >> shift) & 255u];
    }
    uint32_t bin = 255;
    while (histogram[bin] < wanted) wanted -= histogram[bin--];
    prefix |= bin << shift;
    mask |= 255u << shift;
  }
  return {prefix, wanted};
}

}  // namespace

void best_positions(const float* scores, int64_t count, int64_t k, int32_t* positions) {
  Threshold threshold = find_threshold(scores, count, k);
  int64_t found = 0;
  for (int64_t i = 0; i < count && found < k; ++i) {
    const uint32_t key = order_key(scores[i]);
    if (key > threshold.key || (key == threshold.key && threshold.ties-- > 0)) {
      positions[found++] = static_cast<int32_t>(i);
    }
  }
}

namespace {

// positions (ascending) -> slots in place, -1 behind them.
void finish_row(const ops::BatchRows& rows,
                int64_t t,
                int32_t page_size,
                int64_t topk,
                int64_t found,
                int32_t* slots,
                int32_t* lens) {
  const int32_t* pages = rows.page_tables + rows.seq_of_row[t] * rows.page_table_stride;
  for (int64_t i = 0; i < found; ++i) {
    const int32_t position = slots[i];
    slots[i] = pages[position / page_size] * page_size + position % page_size;
  }
  std::fill(slots + found, slots + topk, -1);
  lens[t] = static_cast<int32_t>(found);
}

// logits may be null for a row that takes every token.
void select_row(const ops::BatchRows& rows,
                int64_t t,
                int32_t page_size,
                int64_t topk,
                const float* logits,
                int32_t* slots,
                int32_t* lens) {
  const int64_t count = int64_t{rows.positions[t]} + 1;
  int32_t* row_slots = slots + t * topk;
  if (count <= topk) {
    for (int64_t i = 0; i < count; ++i) row_slots[i] = static_cast<int32_t>(i);
  } else {
    best_positions(logits, count, topk, row_slots);
  }
  finish_row(rows, t, page_size, topk, std::min(count, topk), row_slots, lens);
}

}  // namespace

void CpuBackend::topk(const ops::TopkArgs& args) {
  pool_.parallel_for(args.rows->num_rows, [&](int64_t t, int) {
    select_row(*args.rows, t, args.page_size, args.topk, args.logits + t * args.logits_stride,
               args.slots, args.lens);
  });
}

// Rows go through the logits buffer in runs that fit the budget (fault B53).
void CpuBackend::select_tokens(const ops::SelectTokensArgs& args) {
  const ops::BatchRows& rows = *args.rows;
  const int32_t page_size = args.cache.geometry.page_size;
  const auto budget = static_cast<int64_t>(workspace_.index_logits.size());
  const int64_t query_bytes = int64_t{args.index_n_heads} * args.cache.geometry.index_head_dim *
                              (args.query_format == ops::IndexFormat::kF32    ? 4
                               : args.query_format == ops::IndexFormat::kBf16 ? 2
                                                                              : 1);
  for (int64_t first = 0; first < rows.num_rows;) {
    int64_t last = first, longest = 0;
    for (; last < rows.num_rows; ++last) {
      const int64_t count = int64_t{rows.positions[last]} + 1;
      const int64_t needed = std::max(longest, count > args.topk ? count : 0);
      if (needed * (last - first + 1) > budget) break;
      longest = needed;
    }
    WINNOW_CHECK(last > first, "a row of {} tokens, prepare() was told {}",
                 rows.positions[first] + 1, workspace_.shape.max_context);
    ops::BatchRows part = rows;
    part.num_rows = static_cast<int32_t>(last - first);
    part.positions += first;
    part.seq_of_row += first;
    if (longest > 0) {
      index_logits({.rows = &part,
                    .q = static_cast<const uint8_t*>(args.q) + first * query_bytes,
                    .query_format = args.query_format,
                    .head_weights = args.head_weights + first * args.index_n_heads,
                    .index_n_heads = args.index_n_heads,
                    .cache = args.cache,
                    .key_begin = 0,
                    .key_end = longest,
                    .logits = workspace_.index_logits.data(),
                    .logits_stride = longest});
    }
    pool_.parallel_for(last - first, [&](int64_t r, int) {
      select_row(rows, first + r, page_size, args.topk,
                 workspace_.index_logits.data() + r * longest, args.slots, args.lens);
    });
    first = last;
  }
}

}  // namespace winnow::backends
