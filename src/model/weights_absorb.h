// kv_b_proj as attention in the latent space uses it: split per head and, for queries, transposed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/weights.h"
#include "tensor/dtype.h"

namespace winnow::model {

// Of w_uk and w_uv: that of kv_b_proj, e4m3 multiplied out.
constexpr DType absorbed_dtype(DType kv_b, bool keep_f32) {
  if (kv_b != DType::kE4m3) return kv_b;
  return keep_f32 ? DType::kF32 : DType::kBf16;
}

struct AbsorbedKvB {
  DType dtype = DType::kBf16;
  std::vector<std::byte> w_uk;  // [num_heads * C, qk_nope_head_dim]
  std::vector<std::byte> w_uv;  // [num_heads * v_head_dim, C]
};

// kv_b: [num_heads * (qk_nope_head_dim + v_head_dim), C], in host memory. The halves keep its type;
// e4m3 is multiplied out in fp32 and rounded once to bf16, or kept in fp32. GLM's heads are 448
// rows, so heads and the split fall inside scale blocks: rows find their own scale (fault B80).
AbsorbedKvB split_kv_b(const ops::LinearWeight& kv_b,
                       int64_t num_heads,
                       int64_t qk_nope_head_dim,
                       int64_t v_head_dim,
                       bool keep_f32);

}  // namespace winnow::model
