// Mean, spread and percentiles of a set of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow::bench {

// NaN everywhere for no values.
struct Summary {
  size_t count = 0;
  double mean = 0;
  double median = 0;
  double std = 0;  // of the population
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

Summary summarize(std::vector<double> values);
// Percentile of sorted values by linear interpolation, as NumPy's default; NaN for none.
double percentile(std::span<const double> sorted, double percent);

}  // namespace winnow::bench
