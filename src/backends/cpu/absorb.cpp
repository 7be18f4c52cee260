// Products with kv_b head by head: queries into the latent space, attention output out of it.
#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/linear.h"
#include "backends/cpu/rotary.h"
#include "base/error.h"

namespace winnow::backends {

void CpuBackend::absorb_query(const ops::AbsorbQueryArgs& args) {
  const int64_t heads = args.num_heads, nope = args.qk_nope_head_dim, rope_dim = args.rope.dim;
  const int64_t latent = args.w_uk.out_features / heads;
  const int64_t width = nope + rope_dim, rows = args.rows->num_rows;
  WINNOW_CHECK(args.w_uk.in_features == nope && latent * heads == args.w_uk.out_features,
               "w_uk is {} x {}, {} heads of {}", args.w_uk.out_features, args.w_uk.in_features,
               heads, nope);
  const auto* q = static_cast<const float*>(args.q);
  run_linear({.num_rows = rows,
              .x = q,
              .x_stride = heads * width,
              .num_heads = heads,
              .x_head_stride = width,
              .weights = {&args.w_uk},
              .y = {static_cast<float*>(args.q_latent)},
              .y_stride = heads * latent});
  auto* q_rope = static_cast<float*>(args.q_rope);
  for_items(rows, rows * heads * rope_dim, [&](int64_t t, int) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* from = q + (t * heads + h) * width + nope;
      float* to = q_rope + (t * heads + h) * rope_dim;
      std::copy(from, from + rope_dim, to);
      rotate_interleaved(to, args.rope, args.rows->positions[t]);
    }
  });
}

void CpuBackend::up_project(const ops::UpProjectArgs& args) {
  const int64_t heads = args.num_heads, latent = args.w_uv.in_features;
  WINNOW_CHECK(args.w_uv.out_features % heads == 0, "w_uv has {} rows, {} heads",
               args.w_uv.out_features, heads);
  run_linear({.num_rows = args.num_rows,
              .x = static_cast<const float*>(args.latent),
              .x_stride = heads * latent,
              .num_heads = heads,
              .x_head_stride = latent,
              .weights = {&args.w_uv},
              .y = {static_cast<float*>(args.out)},
              .y_stride = args.w_uv.out_features});
}

}  // namespace winnow::backends
