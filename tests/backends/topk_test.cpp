// Top-k alone is exact: checked against a sort by (score, position).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "backends/backends.h"

namespace winnow {
namespace {

// B14: 150 winners among 8,850 exact zeros; every slot is written, all winners are in.
TEST(CpuTopk, ManyTies) {
  const auto backend = backends::make_cpu(1);
  const int n = 9000, k = 2048;
  std::vector<float> logits(n, 0.0f);
  std::vector<int32_t> winners(n);
  std::iota(winners.begin(), winners.end(), 0);
  std::mt19937 random(5);
  std::shuffle(winners.begin(), winners.end(), random);
  for (int i = 0; i < 150; ++i)
    logits[static_cast<size_t>(winners[static_cast<size_t>(i)])] = 1.0f + static_cast<float>(i);
  std::vector<int32_t> pages(n / 64 + 1);
  std::iota(pages.begin(), pages.end(), 0);
  const int32_t position = n - 1, seq = 0;
  const ops::BatchRows rows{1, 1, nullptr, &position, nullptr, &seq, pages.data(), 0};
  std::vector<int32_t> slots(k, 0x7fffffff);
  int32_t len = 0;
  backend->topk({&rows, logits.data(), n, 64, k, slots.data(), &len});
  EXPECT_EQ(len, k);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(slots, order);
}

}  // namespace
}  // namespace winnow
