#include "eval/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace winnow::eval {
namespace {

// The reference report's eight GPQA runs: what is known of them is mean 0.849125 and deviation
// 0.0159 between them, which makes 0.0056 of the mean and leaves one point unresolved.
TEST(Statistics, TheReportsGpqaRepeats) {
  const double deviation = 0.0159;
  const double step = deviation * std::sqrt(7.0 / 8.0);
  std::vector<double> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(0.849125 + (i % 2 == 0 ? step : -step));
  EXPECT_NEAR(mean(runs), 0.849125, 1e-12);
  EXPECT_NEAR(sample_deviation(runs), deviation, 1e-12);
  EXPECT_NEAR(*standard_error(runs), 0.0056, 5e-5);
}

// One run over 198 questions: the binomial error of the report, 0.0254.
TEST(Statistics, ErrorOverQuestions) {
  std::vector<double> scores(198, 0.0);
  for (int i = 0; i < 168; ++i) scores[static_cast<size_t>(i)] = 1;
  EXPECT_NEAR(*standard_error(scores), 0.0255, 1e-4);
  EXPECT_FALSE(standard_error(std::vector<double>{1.0}));
  EXPECT_EQ(sample_deviation(std::vector<double>{1.0}), 0);
  EXPECT_EQ(mean(std::vector<double>{}), 0);
}

TEST(Statistics, PairedDifferenceByHand) {
  // Differences 1, 0, 1, 0, 1: mean 0.6, deviation 0.5477, error 0.2449, t(4) = 2.7764.
  const std::vector<double> a = {0, 1, 0, 0, 0};
  const std::vector<double> b = {1, 1, 1, 0, 1};
  const PairedDifference d = paired_difference(a, b);
  EXPECT_EQ(d.num_pairs, 5);
  EXPECT_EQ(d.num_differing, 3);
  EXPECT_NEAR(d.mean, 0.6, 1e-12);
  EXPECT_NEAR(d.standard_error, 0.244949, 1e-6);
  EXPECT_NEAR(d.low, 0.6 - 2.776445 * 0.244949, 1e-5);
  EXPECT_NEAR(d.high, 0.6 + 2.776445 * 0.244949, 1e-5);
  EXPECT_NEAR(d.detectable, (2.776445 + 0.940965) * 0.244949, 1e-5);
  const PairedDifference none = paired_difference(a, a);
  EXPECT_EQ(none.num_differing, 0);
  EXPECT_EQ(none.low, 0);
  EXPECT_EQ(none.high, 0);
}

TEST(Statistics, SignTest) {
  EXPECT_EQ(sign_test(0, 0), 1);
  EXPECT_EQ(sign_test(3, 3), 1);
  EXPECT_NEAR(sign_test(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(8, 2), 2 * (1 + 10 + 45) / 1024.0, 1e-12);
  EXPECT_EQ(sign_test(2, 8), sign_test(8, 2));
}

}  // namespace
}  // namespace winnow::eval
