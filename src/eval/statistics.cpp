#include "eval/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace winnow::eval {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<double> standard_error(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  return sample_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b) {
  WINNOW_CHECK(a.size() == b.size() && a.size() >= 2, "{} and {} values", a.size(), b.size());
  std::vector<double> differences;
  PairedDifference result;
  for (size_t i = 0; i < a.size(); ++i) {
    differences.push_back(b[i] - a[i]);
    result.num_differing += differences.back() != 0;
  }
  result.num_pairs = static_cast<int64_t>(a.size());
  result.mean = mean(differences);
  result.standard_error = *standard_error(differences);
  const boost::math::students_t student(static_cast<double>(a.size() - 1));
  const double reach = boost::math::quantile(student, 0.975);
  result.low = result.mean - reach * result.standard_error;
  result.high = result.mean + reach * result.standard_error;
  result.detectable = (reach + boost::math::quantile(student, 0.8)) * result.standard_error;
  return result;
}

double sign_test(int64_t only_a, int64_t only_b) {
  const int64_t n = only_a + only_b;
  if (n == 0) return 1;
  const boost::math::binomial coin(static_cast<double>(n), 0.5);
  const auto fewer = static_cast<double>(std::min(only_a, only_b));
  return std::min(1.0, 2 * boost::math::cdf(coin, fewer));
}

}  // namespace winnow::eval
