// The storage's pages as the arguments that ops take.
#pragma once

#include "kv/kv_storage.h"
#include "ops/backend.h"

namespace winnow::model {

inline ops::LatentCache latent_cache(const kv::KvStorage& storage,
                                     int32_t layer,
                                     float scale = 1.0f) {
  const layout::LatentGeometry& geometry = storage.plan().latent;
  return {.data = storage.latent(layer),
          .geometry = geometry,
          .page_stride_bytes = geometry.page_bytes(),
          .num_pages = storage.num_pages(),
          .scale = scale};
}

inline ops::IndexKeyCache index_key_cache(const kv::KvStorage& storage, int32_t layer) {
  const layout::IndexKeyGeometry& geometry = storage.plan().index_key;
  return {.data = storage.index_keys(layer),
          .geometry = geometry,
          .page_stride_bytes = geometry.page_bytes(),
          .num_pages = storage.num_pages()};
}

// The first num_tokens tokens of one page to another, in every layer and both pools (fault B40).
inline void copy_page_tokens(ops::Backend& backend,
                             const kv::KvStorage& storage,
                             int32_t from_page,
                             int32_t to_page,
                             int32_t num_tokens) {
  const int32_t page_size = storage.plan().latent.page_size;
  const int32_t from_slot = from_page * page_size, to_slot = to_page * page_size;
  for (int32_t layer = 0; layer < storage.num_layers(); ++layer) {
    backend.copy_latent({.cache = latent_cache(storage, layer),
                         .from_slot = from_slot,
                         .to_slot = to_slot,
                         .num_tokens = num_tokens});
    if (storage.index_keys(layer) == nullptr) continue;
    backend.copy_index_keys({.cache = index_key_cache(storage, layer),
                             .from_slot = from_slot,
                             .to_slot = to_slot,
                             .num_tokens = num_tokens});
  }
}

}  // namespace winnow::model
