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

// Radix selection in three passes over the key, most significant bits first.
Threshold find_threshold(const float* scores, int64_t count, int64_t k) {
  constexpr int kShifts[] = {21, 10, 0};
  constexpr uint32_t kBins[] = {2048, 2048, 1024};
  uint32_t prefix = 0, mask = 0;
  int64_t wanted = k;  // rank of the threshold among scores that share the prefix
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = kShifts[pass];
    const uint32_t last_bin = kBins[pass] - 1;
    int32_t histogram[2048] = {};
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = order_key(scores[i]);
      if ((key & mask) == prefix) ++histogram[(key >> shift) & last_bin];
    }
    uint32_t bin = last_bin;
    while (histogram[bin] < wanted) wanted -= histogram[bin--];
    prefix |= bin << shift;
    mask |= last_bin << shift;
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
  int64_t scores = 0;
  for (int64_t t = 0; t < args.rows->num_rows; ++t) scores += args.rows->positions[t];
  for_items(args.rows->num_rows, scores * 8, [&](int64_t t, int) {
    select_row(*args.rows, t, args.page_size, args.topk, args.logits + t * args.logits_stride,
               args.slots, args.lens);
  });
}

// Rows that must be scored go through the logits buffer in runs that fit the budget (fault B53).
void CpuBackend::select_tokens(const ops::SelectTokensArgs& args) {
  const ops::BatchRows& rows = *args.rows;
  const int32_t page_size = args.cache.geometry.page_size;
  const auto budget = static_cast<int64_t>(workspace_.index_logits.size());
  WINNOW_CHECK(rows.num_rows <= static_cast<int64_t>(workspace_.logits_rows.size()), "{} rows",
               rows.num_rows);
  int32_t* scored = workspace_.logits_rows.data();
  int64_t num_scored = 0;
  for (int32_t t = 0; t < rows.num_rows; ++t) {
    if (rows.positions[t] >= args.topk) {
      scored[num_scored++] = t;
    } else {
      select_row(rows, t, page_size, args.topk, nullptr, args.slots, args.lens);
    }
  }
  for (int64_t first = 0; first < num_scored;) {
    int64_t last = first, longest = 0;
    for (; last < num_scored; ++last) {
      const int64_t needed = std::max(longest, int64_t{rows.positions[scored[last]]} + 1);
      if (needed * (last - first + 1) > budget) break;
      longest = needed;
    }
    WINNOW_CHECK(last > first, "a row of {} tokens, prepare() was told {}",
                 rows.positions[scored[first]] + 1, workspace_.shape.max_context);
    float* logits = workspace_.index_logits.data();
    score_keys({.rows = &rows,
                .q = args.q,
                .query_format = args.query_format,
                .head_weights = args.head_weights,
                .index_n_heads = args.index_n_heads,
                .cache = args.cache,
                .key_begin = 0,
                .key_end = longest,
                .logits = logits,
                .logits_stride = longest},
               scored + first, last - first, false);
    for_items(last - first, (last - first) * longest * 8, [&](int64_t i, int) {
      select_row(rows, scored[first + i], page_size, args.topk, logits + i * longest, args.slots,
                 args.lens);
    });
    first = last;
  }
}

}  // namespace winnow::backends
