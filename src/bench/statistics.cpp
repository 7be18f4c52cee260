#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace winnow::bench {

double percentile(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (rank - static_cast<double>(below));
}

Summary summarize(std::vector<double> values) {
  Summary s;
  s.count = values.size();
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.std = std::sqrt(squares / n);
  s.median = percentile(values, 50);
  s.p90 = percentile(values, 90);
  s.p95 = percentile(values, 95);
  s.p99 = percentile(values, 99);
  s.max = percentile(values, 100);
  return s;
}

}  // namespace winnow::bench
