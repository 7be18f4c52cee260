// Rows of the paged index-key cache, whatever the layout.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "ops/attention_ops.h"

namespace winnow::backends {

// Values of count keys that lie one behind the other in a page, without their scales (1 where the
// layout has none).
void read_index_keys(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     int64_t count,
                     const KernelTable& kernels,
                     float* out,
                     float* scales);
// The body that read_index_keys takes.
const char* index_key_reader_name(layout::IndexKeyLayout layout);
// Asks for keys that read_index_keys will want soon.
void prefetch_index_keys(const ops::IndexKeyCache& cache, int64_t slot, int64_t count);
// scale is used by the fp8 layout only.
void write_index_key(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     const float* values,
                     float scale);

}  // namespace winnow::backends
