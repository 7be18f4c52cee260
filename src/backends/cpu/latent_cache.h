// Rows of the paged latent cache, whatever the layout.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "ops/attention_ops.h"

namespace winnow::backends {

// [C latents | R roped key] of one slot as fp32.
void read_latent(const ops::LatentCache& cache,
                 int64_t slot,
                 const KernelTable& kernels,
                 float* out);
// The body that read_latent takes.
const char* latent_reader_name(layout::LatentLayout layout);
// Asks for a slot that read_latent will want soon: chosen tokens lie anywhere.
void prefetch_latent(const ops::LatentCache& cache, int64_t slot);
// Rounds to the cache's layout and stores.
void write_latent(const ops::LatentCache& cache, int64_t slot, const float* values);

inline int64_t latent_slots(const ops::LatentCache& cache) {
  return int64_t{cache.num_pages} * cache.geometry.page_size;
}

}  // namespace winnow::backends
