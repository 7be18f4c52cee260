// The portable index logits against sums in double on the host: every key layout, any widths.
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/gpu_check.h"
#include "kernels/indexer.h"
#include "layout/float_formats.h"

namespace winnow::gpu_check {
namespace {

using layout::IndexKeyLayout;

struct Case {
  IndexKeyLayout layout;
  int32_t heads, dim, page_size;
  std::vector<int32_t> tokens;  // row t sees so many tokens of sequence t % 2
  int64_t key_begin, key_end;
};

// Bytes of one value in the layout's format, and the value that they stand for.
double put_value(IndexKeyLayout layout, uint32_t hash, uint8_t* to) {
  const float value = static_cast<float>(static_cast<int32_t>(hash)) * 0x1p-30f;
  switch (layout) {
    case IndexKeyLayout::kF32:
      std::memcpy(to, &value, 4);
      return value;
    case IndexKeyLayout::kBf16_256: {
      const __nv_bfloat16 rounded = __float2bfloat16(value);
      std::memcpy(to, &rounded, 2);
      return __bfloat162float(rounded);
    }
    default:
      *to = static_cast<uint8_t>(hash % 0x7f) | (hash >> 24 & 0x80);  // any but NaN
      return layout::e4m3_to_f32(*to);
  }
}

void check_case(Context& context, const Case& c) {
  const layout::IndexKeyGeometry keys{c.layout, c.dim, c.page_size};
  const int64_t value_bytes = keys.row_bytes() / c.dim;
  const auto rows = static_cast<int64_t>(c.tokens.size());
  const int64_t longest = *std::max_element(c.tokens.begin(), c.tokens.end());
  const int64_t pages_a_seq = (longest + c.page_size - 1) / c.page_size;
  const int64_t page_stride = keys.page_bytes() + 16;
  std::vector<uint8_t> pool(static_cast<size_t>(2 * pages_a_seq * page_stride), 0xff);
  std::vector<int32_t> tables;
  for (int64_t i = 0; i < 2 * pages_a_seq; ++i) {  // the two sequences' pages by turns
    tables.push_back(static_cast<int32_t>(i % pages_a_seq * 2 + i / pages_a_seq));
  }
  std::vector<double> key_values(static_cast<size_t>(2 * longest * c.dim));
  std::vector<double> scales(static_cast<size_t>(2 * longest), 1.0);
  for (int64_t i = 0; i < 2 * longest; ++i) {
    const int64_t seq = i / longest, s = i % longest;
    uint8_t* page = pool.data() + tables[seq * pages_a_seq + s / c.page_size] * page_stride;
    for (int64_t d = 0; d < c.dim; ++d) {
      key_values[i * c.dim + d] =
          put_value(c.layout, hash32(i * c.dim + d),
                    page + s % c.page_size * keys.row_bytes() + d * value_bytes);
    }
    if (c.layout == IndexKeyLayout::kFp8_132) {
      const float scale = 0.01f + static_cast<float>(hash32(i + 77) % 1000) * 1e-3f;
      std::memcpy(page + keys.page_scales_offset() + s % c.page_size * 4, &scale, 4);
      scales[i] = scale;
    }
  }
  std::vector<uint8_t> q(static_cast<size_t>(rows * c.heads * c.dim * value_bytes));
  std::vector<double> q_values(static_cast<size_t>(rows * c.heads * c.dim));
  for (size_t i = 0; i < q_values.size(); ++i) {
    q_values[i] = put_value(c.layout, hash32(i + (uint64_t{1} << 50)), &q[i * value_bytes]);
  }
  std::vector<float> weights(static_cast<size_t>(rows * c.heads));
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(static_cast<int32_t>(hash32(i + 5))) * 0x1p-31f;
  }
  std::vector<int32_t> positions, seqs;
  for (int64_t t = 0; t < rows; ++t) {
    positions.push_back(c.tokens[t] - 1);
    seqs.push_back(static_cast<int32_t>(t % 2));
  }
  const DeviceArray<uint8_t> d_pool(pool), d_q(q);
  const DeviceArray<float> d_weights(weights);
  const DeviceArray<int32_t> d_positions(positions), d_seqs(seqs), d_tables(tables);
  const int64_t stride = c.key_end - c.key_begin + 3;
  DeviceArray<float> logits(static_cast<size_t>(rows * stride));
  const auto run = [&](int64_t first, int64_t count) {
    CUDA_OK(kernels::portable::index_logits({.rows = {.num_rows = static_cast<int32_t>(count),
                                                      .num_seqs = 2,
                                                      .positions = d_positions.get() + first,
                                                      .seq_of_row = d_seqs.get() + first,
                                                      .page_tables = d_tables.get(),
                                                      .page_table_stride = pages_a_seq},
                                             .q = d_q.get() + first * c.heads * c.dim * value_bytes,
                                             .head_weights = d_weights.get() + first * c.heads,
                                             .index_n_heads = c.heads,
                                             .keys = keys,
                                             .key_data = d_pool.get(),
                                             .page_stride_bytes = page_stride,
                                             .num_pages = static_cast<int32_t>(2 * pages_a_seq),
                                             .key_begin = c.key_begin,
                                             .key_end = c.key_end,
                                             .logits = logits.get() + first * stride,
                                             .logits_stride = stride},
                                            nullptr));
  };
  run(0, rows);
  const std::vector<float> got = logits.download();
  std::string wrong;
  for (int64_t t = 0; t < rows && wrong.empty(); ++t) {
    for (int64_t column = 0; column < stride && wrong.empty(); ++column) {
      const int64_t s = c.key_begin + column;
      const float value = got[t * stride + column];
      double sum = 0, size = 0;
      if (s < c.key_end && s < c.tokens[t]) {
        const int64_t key = t % 2 * longest + s;
        for (int32_t h = 0; h < c.heads; ++h) {
          double product = 0, most = 0;
          for (int64_t d = 0; d < c.dim; ++d) {
            const double term =
                q_values[(t * c.heads + h) * c.dim + d] * key_values[key * c.dim + d];
            product += term;
            most += std::fabs(term);
          }
          sum += std::max(product, 0.0) * weights[t * c.heads + h];
          size += most * std::fabs(static_cast<double>(weights[t * c.heads + h]));
        }
        sum *= scales[key];
        size *= scales[key];
      }
      const bool ok = s >= c.key_end     ? std::isnan(value)
                      : s >= c.tokens[t] ? value == -std::numeric_limits<float>::infinity()
                                         : std::fabs(value - sum) <= size * 1e-5;
      if (!ok) {
        wrong = "row " + std::to_string(t) + " key " + std::to_string(s) + ": " +
                std::to_string(value) + ", want " + std::to_string(sum);
      }
    }
  }
  logits.poison();
  run(0, rows / 2);
  run(rows / 2, rows - rows / 2);
  const std::vector<float> again = logits.download();
  if (std::memcmp(got.data(), again.data(), got.size() * 4) != 0)
    wrong += " bits hang on the batch";
  context.expect(wrong.empty(),
                 std::string("portable_index_logits ") + layout::to_string(c.layout) + " heads " +
                     std::to_string(c.heads) + " width " + std::to_string(c.dim) + " page " +
                     std::to_string(c.page_size),
                 wrong);
}

}  // namespace

void check_portable_index_logits(Context& context) {
  const std::vector<int32_t> tokens = {0, 1, 63, 64, 65, 200, 257, 130};
  for (const IndexKeyLayout layout :
       {IndexKeyLayout::kF32, IndexKeyLayout::kBf16_256, IndexKeyLayout::kFp8_132}) {
    check_case(context, {layout, 32, 128, 64, tokens, 0, 257});
    check_case(context, {layout, 1, 20, 16, tokens, 0, 300});
    check_case(context, {layout, 100, 256, 7, tokens, 33, 210});
    check_case(context, {layout, 5, 64, 1, tokens, 64, 65});
  }
}

}  // namespace winnow::gpu_check
