// Exact top-k where rows are few: a cluster of blocks a row, every score in a register (sm_90).
#pragma once

#include "kernels/indexer.h"

namespace winnow::kernels::portable {

// Blocks of a cluster that this way would take a row of `tokens`; 0: other ways are better.
int32_t topk_few_cluster(const TopkParams& params, int64_t tokens, int32_t num_sms);
cudaError_t topk_few(const TopkParams& params,
                     int64_t tokens,
                     int32_t cluster,
                     cudaStream_t stream);

}  // namespace winnow::kernels::portable
