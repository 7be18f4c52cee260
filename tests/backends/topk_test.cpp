// Top-k alone is exact: checked against a sort by (score, position). Cases name their faults:
// B14, B15, B16, B19, B20, B22, B25.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

struct Selection {
  std::vector<int32_t> slots, lens;
};

// All rows of a case in one call, row t as sequence t with its own shuffled pages.
Selection run(ops::Backend& backend, const TopkCase& c, const PagedRows& rows, int64_t stride) {
  std::vector<float> logits(c.scores.size() * static_cast<size_t>(stride), NAN);
  for (size_t t = 0; t < c.scores.size(); ++t) {
    std::copy(c.scores[t].begin(), c.scores[t].end(),
              logits.begin() + static_cast<int64_t>(t) * stride);
  }
  Selection s;
  s.slots.assign(c.scores.size() * static_cast<size_t>(c.topk), 0x7fffffff);
  s.lens.assign(c.scores.size(), -5);
  const ops::BatchRows view = rows.view();
  backend.topk(
      {&view, logits.data(), stride, rows.page_size, c.topk, s.slots.data(), s.lens.data()});
  return s;
}

TEST(CpuTopk, ExactOnEveryCase) {
  const auto two = prepared_cpu(2);
  const auto one = prepared_cpu(1);
  for (const TopkCase& c : topk_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<SequenceRows> seqs;
    int64_t widest = 0;
    for (const auto& scores : c.scores) {
      seqs.push_back({static_cast<int32_t>(scores.size()) - 1, 1});
      widest = std::max(widest, static_cast<int64_t>(scores.size()));
    }
    for (const int32_t page_size : {64, 1, 7}) {
      const PagedRows rows = make_paged_rows(seqs, page_size, 5, 3);
      const Selection got = run(*two, c, rows, widest);
      for (size_t t = 0; t < c.scores.size(); ++t) {
        const std::vector<int32_t> expected = expected_topk(c.scores[t], c.topk);
        ASSERT_EQ(got.lens[t], static_cast<int32_t>(expected.size()));
        for (int32_t i = 0; i < c.topk; ++i) {
          const auto at = static_cast<size_t>(i);
          const int32_t slot =
              at < expected.size() ? rows.row_slot(static_cast<int64_t>(t), expected[at]) : -1;
          ASSERT_EQ(got.slots[t * static_cast<size_t>(c.topk) + at], slot)
              << "row " << t << " entry " << i;
        }
      }
      // B16: the same again, with another stride and with one thread.
      const Selection again = run(*one, c, rows, widest + 13);
      EXPECT_EQ(got.slots, again.slots);
      EXPECT_EQ(got.lens, again.lens);
    }
  }
}

}  // namespace
}  // namespace winnow::testing
