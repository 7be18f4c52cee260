#include "kv/kv_storage.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace winnow::kv {

int64_t CachePlan::bytes_per_page() const {
  const auto num_layers = static_cast<int64_t>(owns_indexer.size());
  const auto num_full = std::count(owns_indexer.begin(), owns_indexer.end(), true);
  return num_layers * latent.page_bytes() + num_full * index_key.page_bytes();
}

int64_t CachePlan::bytes_per_token() const { return bytes_per_page() / latent.page_size; }

KvStorage::KvStorage(CachePlan plan, int32_t num_pages, const Allocate& allocate)
    : plan_(std::move(plan)), num_pages_(num_pages) {
  WINNOW_CHECK(num_pages > 0, "num_pages {}", num_pages);
  WINNOW_CHECK(plan_.latent.page_size == plan_.index_key.page_size,
               "latent pages of {} tokens, index key pages of {}", plan_.latent.page_size,
               plan_.index_key.page_size);
  for (const bool owns : plan_.owns_indexer) {
    latent_.push_back(allocate(num_pages * plan_.latent.page_bytes()));
    index_keys_.push_back(owns ? allocate(num_pages * plan_.index_key.page_bytes()) : Buffer());
  }
}

int64_t KvStorage::allocated_bytes() const {
  int64_t total = 0;
  for (const Buffer& buffer : latent_) total += buffer.bytes();
  for (const Buffer& buffer : index_keys_) total += buffer.bytes();
  return total;
}

}  // namespace winnow::kv
