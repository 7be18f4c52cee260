// Products of a tile of cached tokens with all heads, and the softmax over them. Lanes run along
// heads (scores) or channels (values); each element sums over k in order by itself, so neither the
// tiling nor the other heads leave a trace. Included by kernels_<isa>.cpp only.
#include "backends/cpu/kernels.h"

namespace winnow::backends::WINNOW_ISA {
namespace {

constexpr int64_t kPanel = 2 * kLanes;

template <bool kAByColumns, int M>
WINNOW_INLINE void product_tile(
    const Product& p, int64_t row, int64_t panel, int64_t k_begin, int64_t k_end, bool accumulate) {
  const float* a = kAByColumns ? p.a + row : p.a + row * p.a_stride;
  const float* b = p.b + panel * p.b_panel_stride;
  float* c = p.c + row * p.c_stride + panel * kPanel;
  Floats acc[M][2] = {};
  for (int64_t k = k_begin; k < k_end; ++k) {
    const Floats b0 = load(b + k * p.b_k_stride), b1 = load(b + k * p.b_k_stride + kLanes);
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const Floats av = splat(kAByColumns ? a[k * p.a_stride + m] : a[m * p.a_stride + k]);
      acc[m][0] = fma(av, b0, acc[m][0]);
      acc[m][1] = fma(av, b1, acc[m][1]);
    }
  }
  // What was there is added last: reading it first would hold the sums up.
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* to = c + m * p.c_stride + v * kLanes;
      store(to, accumulate ? load(to) + acc[m][v] : acc[m][v]);
    }
  }
}

template <bool kAByColumns>
void product_panel(
    const Product& p, int64_t panel, int64_t k_begin, int64_t k_end, bool accumulate) {
  int64_t row = 0;
  for (; row + 6 <= p.m; row += 6) {
    product_tile<kAByColumns, 6>(p, row, panel, k_begin, k_end, accumulate);
  }
  switch (p.m - row) {
    case 1:
      return product_tile<kAByColumns, 1>(p, row, panel, k_begin, k_end, accumulate);
    case 2:
      return product_tile<kAByColumns, 2>(p, row, panel, k_begin, k_end, accumulate);
    case 3:
      return product_tile<kAByColumns, 3>(p, row, panel, k_begin, k_end, accumulate);
    case 4:
      return product_tile<kAByColumns, 4>(p, row, panel, k_begin, k_end, accumulate);
    case 5:
      return product_tile<kAByColumns, 5>(p, row, panel, k_begin, k_end, accumulate);
    default:
      return;
  }
}

// In blocks of k whose panel of b stays in the first-level cache while all rows pass by.
void product(const Product& p) {
  constexpr int64_t kBlock = 128;
  for (int64_t k = 0; k < p.k; k += kBlock) {
    const int64_t end = k + kBlock < p.k ? k + kBlock : p.k;
    for (int64_t panel = 0; panel < p.num_panels; ++panel) {
      const bool accumulate = p.accumulate || k > 0;
      if (p.a_by_columns) {
        product_panel<true>(p, panel, k, end, accumulate);
      } else {
        product_panel<false>(p, panel, k, end, accumulate);
      }
    }
  }
}

// A maximum to subtract: (-inf) - (-inf) must not be formed (B28).
WINNOW_INLINE Floats finite_or_zero(Floats maximum) {
  return select(maximum == splat(-__builtin_inff()), Floats{}, maximum);
}

// b where it is larger or NaN.
WINNOW_INLINE Floats max_or_nan(Floats a, Floats b) { return select((a < b) | (b != b), b, a); }

// Scores of kLanes heads become weights relative to the new maxima; factors: what earlier outputs
// are to be multiplied with. A NaN score reaches the output, it does not pass for a masked token.
void softmax_heads(const AttendGroup& g, int64_t head, float* factors) {
  const int64_t stride = g.num_panels * kPanel;
  float* scores = g.scores + head;
  const Floats before = load(g.state.maxima + head);
  Floats largest = before;
  for (int64_t s = 0; s < g.count; ++s) {
    const Floats v = load(scores + s * stride) * splat(g.softmax_scale);
    store(scores + s * stride, v);
    largest = max_or_nan(largest, v);
  }
  const Floats subtracted = finite_or_zero(largest);
  Floats sum = {};
  for (int64_t s = 0; s < g.count; ++s) {
    const Floats weight = exp_nonpositive(load(scores + s * stride) - subtracted);
    store(scores + s * stride, weight);
    sum += weight;
  }
  const Floats factor = exp_nonpositive(before - subtracted);
  store(g.state.sums + head, fma(load(g.state.sums + head), factor, sum));
  store(g.state.maxima + head, largest);
  store(factors, factor);
}

void attend_group(const AttendGroup& g) {
  const int64_t stride = g.num_panels * kPanel;
  Product scores = {.a = g.latents,
                    .a_stride = g.latent_stride,
                    .b = g.q_latent,
                    .b_k_stride = kPanel,
                    .b_panel_stride = g.kv_lora_rank * kPanel,
                    .c = g.scores,
                    .c_stride = stride,
                    .m = g.count,
                    .k = g.kv_lora_rank,
                    .num_panels = g.num_panels};
  product(scores);
  scores.a += g.kv_lora_rank;
  scores.b = g.q_rope;
  scores.b_panel_stride = g.qk_rope_head_dim * kPanel;
  scores.k = g.qk_rope_head_dim;
  scores.accumulate = true;
  product(scores);
  for (int64_t first = 0; first < g.num_heads; first += kLanes) {
    float factors[kLanes];
    softmax_heads(g, first, factors);
    for (int64_t i = 0; !g.is_first && i < kLanes && first + i < g.num_heads; ++i) {
      if (factors[i] == 1.0f) continue;
      float* output = g.state.output + (first + i) * g.output_stride;
      for (int64_t c = 0; c < g.num_channels; c += kLanes) {
        store(output + c, load(output + c) * splat(factors[i]));
      }
    }
  }
  product({.a = g.scores,
           .a_stride = stride,
           .a_by_columns = true,
           .b = g.latents,
           .b_k_stride = g.latent_stride,
           .b_panel_stride = kPanel,
           .c = g.state.output,
           .c_stride = g.output_stride,
           .m = g.num_heads,
           .k = g.count,
           .num_panels = g.num_channels / kPanel,
           .accumulate = !g.is_first});
}

void merge_states(const SoftmaxState& part,
                  const SoftmaxState& all,
                  int64_t num_heads,
                  int64_t num_channels,
                  int64_t output_stride) {
  for (int64_t h = 0; h < num_heads; ++h) {
    const Floats ours = splat(all.maxima[h]), theirs = splat(part.maxima[h]);
    const Floats largest = max_or_nan(ours, theirs), subtracted = finite_or_zero(largest);
    const Floats keep = exp_nonpositive(ours - subtracted);
    const Floats take = exp_nonpositive(theirs - subtracted);
    all.maxima[h] = largest[0];
    all.sums[h] = (splat(all.sums[h]) * keep + splat(part.sums[h]) * take)[0];
    float* to = all.output + h * output_stride;
    const float* from = part.output + h * output_stride;
    for (int64_t c = 0; c < num_channels; c += kLanes) {
      store(to + c, fma(load(to + c), keep, load(from + c) * take));
    }
  }
}

void combine_heads(const float* products,
                   int64_t stride,
                   const float* head_weights,
                   int64_t num_heads,
                   const float* key_scales,
                   int64_t count,
                   float* logits) {
  float padded[kLanes] = {};  // weights of the last heads
  const int64_t whole = num_heads / kLanes * kLanes;
  Ints is_head = {};
  for (int64_t i = 0; i < num_heads - whole; ++i) {
    padded[i] = head_weights[whole + i];
    is_head[i] = -1;
  }
  for (int64_t s = 0; s < count; ++s) {
    const float* row = products + s * stride;
    Floats sum = {};
    for (int64_t h = 0; h < whole; h += kLanes) {
      // NaN > 0 is false: select on the other side keeps a NaN product.
      const Floats v = load(row + h);
      sum = fma(select(v < Floats{}, Floats{}, v), load(head_weights + h), sum);
    }
    if (whole < num_heads) {
      const Floats v = select(is_head, load(row + whole), Floats{});
      sum = fma(select(v < Floats{}, Floats{}, v), load(padded), sum);
    }
    logits[s] = sum_lanes(sum) * key_scales[s];
  }
}

}  // namespace
}  // namespace winnow::backends::WINNOW_ISA
