// The generations under way, by the id their client knows, for /abort_request.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace winnow::server {

class Generation;

class LiveRequests {
 public:
  // False when the id is taken.
  bool add(const std::string& rid, std::weak_ptr<Generation> generation);
  void remove(const std::string& rid);
  std::shared_ptr<Generation> find(const std::string& rid) const;
  std::vector<std::shared_ptr<Generation>> all() const;
  int64_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Generation>> by_rid_;
};

}  // namespace winnow::server
