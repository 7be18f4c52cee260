#include "server/live_requests.h"

namespace winnow::server {

bool LiveRequests::add(const std::string& rid, std::weak_ptr<Generation> generation) {
  std::lock_guard lock(mutex_);
  return by_rid_.emplace(rid, std::move(generation)).second;
}

void LiveRequests::remove(const std::string& rid) {
  std::lock_guard lock(mutex_);
  by_rid_.erase(rid);
}

std::shared_ptr<Generation> LiveRequests::find(const std::string& rid) const {
  std::lock_guard lock(mutex_);
  const auto found = by_rid_.find(rid);
  return found == by_rid_.end() ? nullptr : found->second.lock();
}

std::vector<std::shared_ptr<Generation>> LiveRequests::all() const {
  std::vector<std::shared_ptr<Generation>> out;
  std::lock_guard lock(mutex_);
  for (const auto& [rid, weak] : by_rid_) {
    if (auto generation = weak.lock()) out.push_back(std::move(generation));
  }
  return out;
}

int64_t LiveRequests::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(by_rid_.size());
}

}  // namespace winnow::server
