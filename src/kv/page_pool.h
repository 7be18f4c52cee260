// The fixed set of KV pages, counted by reference. Knows nothing of their content: a page id means
// the same page in every layer's latent and index-key buffer, so the two always move as one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow::kv {

class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  // A page with one reference, or -1 when none is free.
  int32_t allocate();
  void retain(int32_t page);
  // The last reference gone, the page is free; its content stays until the page is written again.
  void release(int32_t page);

  int32_t num_references(int32_t page) const { return references_[static_cast<size_t>(page)]; }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_pages() const { return static_cast<int32_t>(references_.size()); }

  // "" when the free list and the counts agree, else what is wrong.
  std::string check_integrity() const;

 private:
  std::vector<int32_t> references_;  // [num_pages]
  std::vector<int32_t> free_;        // a stack: the page freed last is the warmest
};

}  // namespace winnow::kv
