// Means with their errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace winnow::eval {

double mean(std::span<const double> values);  // 0 for none
// With n - 1; 0 for fewer than two values.
double sample_deviation(std::span<const double> values);
// sample_deviation / sqrt(n): how far the mean of such values strays. Nothing for fewer than two.
std::optional<double> standard_error(std::span<const double> values);

struct PairedDifference {
  int64_t num_pairs = 0;
  int64_t num_differing = 0;
  double mean = 0;            // of b - a
  double standard_error = 0;  // 0 where all differences are equal
  double low = 0;             // the 95 % interval, by Student's t
  double high = 0;
  // The smallest true difference that would show up (interval without 0) in four runs of five.
  double detectable = 0;
};

// a[i] and b[i] belong to one question. At least two pairs.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b);

// Two-sided sign test (McNemar's exact test): the chance of a split at least as uneven as
// only_a : only_b when neither side is better. 1 where both are 0.
double sign_test(int64_t only_a, int64_t only_b);

}  // namespace winnow::eval
