#include "engine/logits_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace winnow::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> row(size);
  for (float& x : row) x = normal(random);
  return row;
}

TEST(FindPeak, LowestIdOfTheLargest) {
  for (const size_t size : {1u, 7u, 8u, 9u, 1000u}) {
    std::vector<float> row(size, -3.0f);
    for (size_t at = 0; at < size; at += 1 + size / 20) {
      row[at] = 5;
      EXPECT_EQ(find_peak(row).id, static_cast<int32_t>(at));
      row[at] = -3;
    }
    EXPECT_EQ(find_peak(row).id, 0);
  }
}

// Fault B74: one NaN anywhere is seen.
TEST(FindPeak, RefusesNanAndInfinity) {
  for (const size_t size : {1u, 8u, 13u, 1000u}) {
    std::vector<float> row = random_row(size, 1);
    for (size_t at = 0; at < size; ++at) {
      for (const float bad : {kNan, kInf}) {
        const float good = std::exchange(row[at], bad);
        ASSERT_EQ(find_peak(row).id, -1) << at;
        row[at] = good;
      }
    }
    std::fill(row.begin(), row.end(), -kInf);
    EXPECT_EQ(find_peak(row).id, -1);
    row.back() = -1000;
    EXPECT_EQ(find_peak(row).id, static_cast<int32_t>(size) - 1);
  }
}

TEST(ExpWeights, AgreeWithTheLibrary) {
  std::vector<float> row;
  for (float x = 0; x > -100; x -= 0.0137f) row.push_back(x);
  row.push_back(-kInf);
  row.push_back(-1e30f);
  std::vector<float> weights(row.size());
  exp_weights(row, 0, 1, weights);
  EXPECT_EQ(weights[0], 1.0f);
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] < -87.7f) {
      EXPECT_EQ(weights[i], 0.0f);
    } else if (row[i] > -87.6f) {
      EXPECT_NEAR(weights[i] / std::exp(static_cast<double>(row[i])), 1.0, 3e-7) << row[i];
    }
  }
}

TEST(LogSumExp, AgreesWithDoubles) {
  for (const size_t size : {1u, 5u, 511u, 512u, 513u, 20000u}) {
    const std::vector<float> row = random_row(size, 2);
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    EXPECT_NEAR(log_sum_exp(row, find_peak(row).logit), std::log(sum), 1e-6);
  }
}

TEST(SelectTop, IsTheHeadOfASort) {
  std::vector<float> row = random_row(3000, 3);
  for (float& x : row) x = std::round(x);  // many ties
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return row[a] > row[b]; });
  std::vector<std::pair<int32_t, float>> top;
  for (const int32_t count : {0, 1, 2, 20, 2999, 3000, 4000}) {
    select_top(row, count, top);
    ASSERT_EQ(top.size(), static_cast<size_t>(std::min(count, 3000)));
    for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].first, order[i]);
  }
}

}  // namespace
}  // namespace winnow::engine
