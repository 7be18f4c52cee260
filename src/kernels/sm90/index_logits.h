// The two index-logits kernels behind sm90::index_logits, and the plan that cuts their work.
#pragma once

#include <cuda.h>

#include "kernels/indexer.h"
#include "kernels/sm90/tensor_map.h"

namespace winnow::kernels::sm90 {

struct LogitsArgs;

// Groups of neighbouring rows of one sequence, on the device. Group g has the rows
// group_rows[g]..group_rows[g + 1]; page_prefix[g] pages come before it.
struct Plan {
  int32_t* num_groups = nullptr;
  int32_t* group_rows = nullptr;   // [num_groups + 1]
  int32_t* page_prefix = nullptr;  // [num_groups + 1]
};

// Rows of a group of the many-rows kernel.
int index_logits_group_rows(int32_t padded_heads);
// padded_heads: 32, 64 or 128, at least index_n_heads.
cudaError_t index_logits_groups(const LogitsArgs& args,
                                const Plan& plan,
                                const CUtensorMap& keys,
                                const void* q,
                                int32_t padded_heads,
                                int num_sms,
                                cudaStream_t stream);
// One row at a time; at most kMaxSingleRows rows.
inline constexpr int kMaxSingleRows = 1024;
cudaError_t index_logits_single(const LogitsArgs& args,
                                const CUtensorMap& keys,
                                const void* q,
                                int32_t padded_heads,
                                int num_sms,
                                cudaStream_t stream);

}  // namespace winnow::kernels::sm90
