// A Prometheus histogram: fixed upper bounds, counts, a sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace winnow::server {

class Histogram {
 public:
  // Bounds ascend; the bucket for everything beyond is added.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value, int64_t times = 1) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<size_t>(bucket)] += times;
    sum_ += value * static_cast<double>(times);
  }

  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const { return counts_; }  // by bucket, not cumulative
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

}  // namespace winnow::server
