#include "kv/page_pool.h"

#include <fmt/format.h>

#include "base/error.h"

namespace winnow::kv {

PagePool::PagePool(int32_t num_pages) {
  WINNOW_CHECK(num_pages > 0, "num_pages {}", num_pages);
  references_.resize(static_cast<size_t>(num_pages));
  free_.reserve(static_cast<size_t>(num_pages));
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

int32_t PagePool::allocate() {
  if (free_.empty()) return -1;
  const int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::retain(int32_t page) {
  WINNOW_CHECK(page >= 0 && page < num_pages(), "page {} of {}", page, num_pages());
  WINNOW_CHECK(references_[static_cast<size_t>(page)] > 0, "page {} is free", page);
  ++references_[static_cast<size_t>(page)];
}

void PagePool::release(int32_t page) {
  WINNOW_CHECK(page >= 0 && page < num_pages(), "page {} of {}", page, num_pages());
  int32_t& references = references_[static_cast<size_t>(page)];
  WINNOW_CHECK(references > 0, "page {} is free already", page);
  if (--references == 0) free_.push_back(page);
}

std::string PagePool::check_integrity() const {
  std::vector<bool> listed(references_.size());
  for (int32_t page : free_) {
    if (listed[static_cast<size_t>(page)]) return fmt::format("page {} is free twice", page);
    listed[static_cast<size_t>(page)] = true;
  }
  for (int32_t page = 0; page < num_pages(); ++page) {
    const int32_t references = num_references(page);
    if ((references == 0) != listed[static_cast<size_t>(page)]) {
      return fmt::format("page {} has {} references and is {}in the free list", page, references,
                         listed[static_cast<size_t>(page)] ? "" : "not ");
    }
  }
  return "";
}

}  // namespace winnow::kv
