// Bounds what the request bodies of all connections take together, from their first byte until
// they are parsed: a few hundred half-sent ones would not fit the memory otherwise. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace winnow::server {

// What every body may take uncounted, so that small requests get through beside large ones.
inline constexpr int64_t kFreeBodyBytes = 64 << 10;

class BodyBudget {
 public:
  explicit BodyBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  bool take(int64_t bytes) {
    if (used_bytes_.fetch_add(bytes) + bytes <= limit_bytes_) return true;
    used_bytes_ -= bytes;
    return false;
  }
  void give_back(int64_t bytes) { used_bytes_ -= bytes; }
  int64_t used_bytes() const { return used_bytes_; }

 private:
  const int64_t limit_bytes_;
  std::atomic<int64_t> used_bytes_{0};
};

// One body's share; given back with the charge.
class BodyCharge {
 public:
  explicit BodyCharge(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyCharge() { budget_->give_back(bytes_); }
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;

  // False when the budget is spent; the charge is then what it was.
  bool grow_to(int64_t body_bytes) {
    const int64_t more = std::max<int64_t>(body_bytes - kFreeBodyBytes, 0) - bytes_;
    if (more <= 0) return true;
    if (!budget_->take(more)) return false;
    bytes_ += more;
    return true;
  }

 private:
  const std::shared_ptr<BodyBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace winnow::server
