// Rows of the paged index-key cache, whatever the layout.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels.h"
#include "ops/attention_ops.h"

namespace winnow::backends {

// Values of one key without its scale; returns the scale (1 where the layout has none).
float read_index_key(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     const KernelTable& kernels,
                     float* out);
// scale is used by the fp8 layout only.
void write_index_key(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     const float* values,
                     float scale);

}  // namespace winnow::backends
