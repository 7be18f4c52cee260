// The bytes behind the pages: one latent buffer a layer, one index-key buffer for each layer that
// owns an indexer, all allocated at start-up. A page id means the same page in every buffer, so
// that latent rows and index keys move, free and match as one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layout/kv_layout.h"
#include "tensor/buffer.h"

namespace winnow::kv {

struct CachePlan {
  layout::LatentGeometry latent;
  layout::IndexKeyGeometry index_key;
  std::vector<bool> owns_indexer;  // [num_layers]

  int64_t bytes_per_page() const;
  // Bytes that one cached token costs over all layers.
  int64_t bytes_per_token() const;
};

class KvStorage {
 public:
  using Allocate = std::function<Buffer(int64_t bytes)>;

  KvStorage(CachePlan plan, int32_t num_pages, const Allocate& allocate);

  const CachePlan& plan() const { return plan_; }
  int32_t num_pages() const { return num_pages_; }
  int32_t num_layers() const { return static_cast<int32_t>(latent_.size()); }
  // [num_pages][plan().latent.page_bytes()]
  void* latent(int32_t layer) const { return latent_[layer].data(); }
  // [num_pages][plan().index_key.page_bytes()]; null for layers without an indexer.
  void* index_keys(int32_t layer) const { return index_keys_[layer].data(); }
  int64_t allocated_bytes() const;

 private:
  CachePlan plan_;
  int32_t num_pages_;
  std::vector<Buffer> latent_;
  std::vector<Buffer> index_keys_;
};

}  // namespace winnow::kv
