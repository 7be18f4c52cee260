// Products of a few dozen heads with a tile of cached tokens, and the softmax over them. Lanes run
// along tokens (scores) or channels (values); each element sums over k in order by itself, so
// neither the tiling nor the other heads leave a trace. Included by kernels_<isa>.cpp only.
#include "backends/cpu/kernels.h"

namespace winnow::backends::WINNOW_ISA {
namespace {

constexpr int64_t kPanel = 2 * kLanes;

template <int M>
WINNOW_INLINE void product_tile(const Product& p, int64_t row, int64_t panel) {
  const float* a = p.a + row * p.a_stride;
  const float* b = p.b + panel * p.b_panel_stride;
  float* c = p.c + row * p.c_stride + panel * kPanel;
  Floats acc[M][2];
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    acc[m][0] = p.accumulate ? load(c + m * p.c_stride) : Floats{};
    acc[m][1] = p.accumulate ? load(c + m * p.c_stride + kLanes) : Floats{};
  }
  for (int64_t k = 0; k < p.k; ++k) {
    const Floats b0 = load(b + k * p.b_k_stride), b1 = load(b + k * p.b_k_stride + kLanes);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const Floats av = splat(a[m * p.a_stride + k]);
      acc[m][0] = fma(av, b0, acc[m][0]);
      acc[m][1] = fma(av, b1, acc[m][1]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
    store(c + m * p.c_stride, acc[m][0]);
    store(c + m * p.c_stride + kLanes, acc[m][1]);
  }
}

void product(const Product& p) {
  for (int64_t panel = 0; panel < p.num_panels; ++panel) {
    int64_t row = 0;
    for (; row + 6 <= p.m; row += 6) product_tile<6>(p, row, panel);
    switch (p.m - row) {
      case 1:
        product_tile<1>(p, row, panel);
        break;
      case 2:
        product_tile<2>(p, row, panel);
        break;
      case 3:
        product_tile<3>(p, row, panel);
        break;
      case 4:
        product_tile<4>(p, row, panel);
        break;
      case 5:
        product_tile<5>(p, row, panel);
        break;
      default:
        break;
    }
  }
}

// Scores of one head become weights relative to the new maximum; the old output is rescaled.
void softmax_head(const AttendGroup& g, int64_t head) {
  float* scores = g.scores + head * kTokenTile;
  const float minus_inf = -__builtin_inff();
  for (int64_t s = g.count; s < kTokenTile; ++s) scores[s] = minus_inf;
  Floats largest_lanes = splat(g.maxima[head]);
  Ints nan_lanes = {};
  for (int64_t s = 0; s < kTokenTile; s += kLanes) {
    const Floats v = load(scores + s) * splat(g.softmax_scale);
    store(scores + s, v);
    largest_lanes = max(largest_lanes, v);
    nan_lanes |= v != v;
  }
  float largest = max_lanes(largest_lanes);
  // A NaN score must reach the output, not pass for a masked token.
  for (int64_t l = 0; l < kLanes; ++l) {
    if (nan_lanes[l] != 0) largest = __builtin_nanf("");
  }
  float* output = g.output + head * g.output_stride;
  if (largest == minus_inf) {  // nothing to weigh yet; (-inf) - (-inf) must not be formed (B28)
    memset(scores, 0, kTokenTile * sizeof(float));
    return;
  }
  Floats sum = {};
  for (int64_t s = 0; s < kTokenTile; s += kLanes) {
    const Floats weight = exp_nonpositive(load(scores + s) - splat(largest));
    store(scores + s, weight);
    sum += weight;
  }
  const float rescale = exp_nonpositive(splat(g.maxima[head] - largest))[0];
  g.sums[head] = g.sums[head] * rescale + sum_lanes(sum);
  g.maxima[head] = largest;
  if (rescale == 1.0f) return;
  for (int64_t c = 0; c < g.output_stride; c += kLanes) {
    store(output + c, load(output + c) * splat(rescale));
  }
}

void attend_group(const AttendGroup& g) {
  const int64_t width = g.kv_lora_rank + g.qk_rope_head_dim;
  product({.a = g.q_latent,
           .a_stride = g.kv_lora_rank,
           .b = g.transposed,
           .b_k_stride = kPanel,
           .b_panel_stride = width * kPanel,
           .c = g.scores,
           .c_stride = kTokenTile,
           .m = g.num_heads,
           .k = g.kv_lora_rank,
           .num_panels = kTokenTile / kPanel});
  product({.a = g.q_rope,
           .a_stride = g.qk_rope_head_dim,
           .b = g.transposed + g.kv_lora_rank * kPanel,
           .b_k_stride = kPanel,
           .b_panel_stride = width * kPanel,
           .c = g.scores,
           .c_stride = kTokenTile,
           .m = g.num_heads,
           .k = g.qk_rope_head_dim,
           .num_panels = kTokenTile / kPanel,
           .accumulate = true});
  for (int64_t head = 0; head < g.num_heads; ++head) softmax_head(g, head);
  product({.a = g.scores,
           .a_stride = kTokenTile,
           .b = g.latents,
           .b_k_stride = g.latent_stride,
           .b_panel_stride = kPanel,
           .c = g.output,
           .c_stride = g.output_stride,
           .m = g.num_heads,
           .k = g.count,
           .num_panels = g.output_stride / kPanel,
           .accumulate = true});
}

void combine_heads(const float* products,
                   const float* head_weights,
                   int64_t num_heads,
                   const float* key_scales,
                   float* logits) {
  for (int64_t s = 0; s < kTokenTile; s += kLanes) {
    Floats sum = {};
    for (int64_t h = 0; h < num_heads; ++h) {
      // NaN > 0 is false: select on the other side keeps a NaN product.
      const Floats v = load(products + h * kTokenTile + s);
      const Floats positive = select(v < Floats{}, Floats{}, v);
      sum = fma(positive, splat(head_weights[h]), sum);
    }
    store(logits + s, sum * load(key_scales + s));
  }
}

}  // namespace
}  // namespace winnow::backends::WINNOW_ISA
