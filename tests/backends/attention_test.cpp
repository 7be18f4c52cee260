// Sparse and dense MLA over every layout against a double reference, and bits that depend on the
// row's own list alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

struct Output {
  std::vector<float> out, lse;
  bool operator==(const Output&) const = default;
};

Output run_sparse(ops::Backend& backend,
                  const AttentionCase& c,
                  AttentionData& data,
                  int32_t first = 0,
                  int32_t count = -1) {
  ops::BatchRows view = data.rows.view();
  if (count < 0) count = view.num_rows;
  view.num_rows = count;
  const int64_t heads = int64_t{first} * c.num_heads;
  Output o;
  o.out.assign(static_cast<size_t>(int64_t{count} * c.num_heads * c.kv_lora_rank), NAN);
  o.lse.assign(static_cast<size_t>(int64_t{count} * c.num_heads), NAN);
  backend.sparse_mla({&view, data.q_latent.data() + heads * c.kv_lora_rank,
                      data.q_rope.data() + heads * c.qk_rope_head_dim,
                      data.slots.data() + int64_t{first} * c.topk, data.lens.data() + first, c.topk,
                      c.num_heads, data.softmax_scale, data.cache.view(data.cache.bytes.data()),
                      o.out.data(), o.lse.data()});
  return o;
}

struct Expected {
  std::vector<double> out;
  double lse = 0;
};

Expected reference(const AttentionCase& c,
                   const AttentionData& data,
                   int64_t row,
                   int64_t head,
                   const std::vector<int32_t>& slots) {
  const int64_t channels = c.kv_lora_rank, rope = c.qk_rope_head_dim;
  const float* ql = data.q_latent.data() + (row * c.num_heads + head) * channels;
  const float* qr = data.q_rope.data() + (row * c.num_heads + head) * rope;
  std::vector<std::vector<double>> values;
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (const int32_t slot : slots) {
    if (slot < 0 || slot >= data.rows.num_pages * data.rows.page_size) continue;
    values.push_back(data.cache.read(slot));
    double score = 0;
    for (int64_t i = 0; i < channels; ++i) score += ql[i] * values.back()[static_cast<size_t>(i)];
    for (int64_t i = 0; i < rope; ++i) {
      score += qr[i] * values.back()[static_cast<size_t>(channels + i)];
    }
    scores.push_back(score * data.softmax_scale);
    largest = std::max(largest, scores.back());
  }
  Expected e{std::vector<double>(static_cast<size_t>(channels), 0.0),
             -std::numeric_limits<double>::infinity()};
  if (scores.empty()) return e;
  double sum = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    const double p = std::exp(scores[j] - largest);
    sum += p;
    for (size_t i = 0; i < e.out.size(); ++i) e.out[i] += p * values[j][i];
  }
  for (double& v : e.out) v /= sum;
  e.lse = largest + std::log(sum);
  return e;
}

void expect_matches(const AttentionCase& c,
                    const AttentionData& data,
                    const Output& got,
                    const std::vector<std::vector<int32_t>>& slots) {
  for (int64_t row = 0; row < data.rows.num_rows(); ++row) {
    for (const int64_t head : {int64_t{0}, int64_t{c.num_heads / 2}, int64_t{c.num_heads - 1}}) {
      const Expected e = reference(c, data, row, head, slots[static_cast<size_t>(row)]);
      const int64_t at = row * c.num_heads + head;
      if (std::isinf(e.lse)) {
        EXPECT_EQ(got.lse[static_cast<size_t>(at)], -INFINITY);
      } else {
        EXPECT_NEAR(got.lse[static_cast<size_t>(at)], e.lse, 1e-4);
      }
      for (int64_t i = 0; i < c.kv_lora_rank; ++i) {
        ASSERT_NEAR(got.out[static_cast<size_t>(at * c.kv_lora_rank + i)],
                    e.out[static_cast<size_t>(i)], 2e-5)
            << "row " << row << " head " << head << " channel " << i;
      }
    }
  }
}

std::vector<std::vector<int32_t>> listed(const AttentionCase& c, const AttentionData& data) {
  std::vector<std::vector<int32_t>> lists;
  for (size_t t = 0; t < data.lens.size(); ++t) {
    const auto begin = data.slots.begin() + static_cast<int64_t>(t) * c.topk;
    lists.emplace_back(begin, begin + data.lens[t]);
  }
  return lists;
}

// B28 and B31 among the cases; NaN in every byte that no row may see.
TEST(CpuAttention, SparseMatchesDoubleReference) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    const auto backend = prepared_cpu(2, *kernels);
    for (const AttentionCase& c : attention_cases()) {
      SCOPED_TRACE(std::string(kernels->isa) + " " + c.name);
      AttentionData data = make_attention(c);
      expect_matches(c, data, run_sparse(*backend, c, data), listed(c, data));
    }
  }
}

TEST(CpuAttention, BitsDependOnTheRowAlone) {
  const auto two = prepared_cpu(2);
  const auto one = prepared_cpu(1);
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(c.name);
    AttentionData data = make_attention(c);
    const Output all = run_sparse(*two, c, data);
    ASSERT_EQ(all, run_sparse(*one, c, data));
    Output parts;
    for (int32_t t = 0; t < data.rows.num_rows(); ++t) {
      const Output part = run_sparse(*two, c, data, t, 1);
      parts.out.insert(parts.out.end(), part.out.begin(), part.out.end());
      parts.lse.insert(parts.lse.end(), part.lse.begin(), part.lse.end());
    }
    ASSERT_EQ(all, parts);
    AttentionData elsewhere = make_attention(c, 99);
    ASSERT_EQ(all, run_sparse(*two, c, elsewhere));
    AttentionCase padded = c;
    padded.padding_bytes += 128;  // B31
    AttentionData stretched = make_attention(padded);
    ASSERT_EQ(all, run_sparse(*two, padded, stretched));
  }
}

TEST(CpuAttention, DenseIsSparseOverEveryToken) {
  const auto backend = prepared_cpu(2);
  for (const AttentionCase& c : attention_cases()) {
    if (c.pattern != SlotPattern::kVisible) continue;
    AttentionData data = make_attention(c);
    const ops::BatchRows view = data.rows.view();
    Output dense;
    dense.out.assign(data.q_latent.size(), NAN);
    dense.lse.assign(data.lens.size() * static_cast<size_t>(c.num_heads), NAN);
    backend->dense_mla({&view, data.q_latent.data(), data.q_rope.data(), c.num_heads,
                        data.softmax_scale, data.cache.view(data.cache.bytes.data()),
                        dense.out.data(), dense.lse.data()});
    std::vector<std::vector<int32_t>> everything;
    for (int64_t t = 0; t < data.rows.num_rows(); ++t) {
      everything.emplace_back();
      for (int64_t s = 0; s <= data.rows.positions[static_cast<size_t>(t)]; ++s) {
        everything.back().push_back(data.rows.row_slot(t, s));
      }
    }
    SCOPED_TRACE(c.name);
    expect_matches(c, data, dense, everything);
    if (*std::max_element(data.lens.begin(), data.lens.end()) < c.topk) {  // nothing was left out
      EXPECT_EQ(dense, run_sparse(*backend, c, data));
    }
  }
}

// A NaN in a token that is attended to must show, not vanish.
TEST(CpuAttention, NanInASelectedTokenShows) {
  const auto backend = prepared_cpu(1);
  AttentionCase c = attention_cases()[0];
  AttentionData data = make_attention(c);
  std::vector<float> row(static_cast<size_t>(c.kv_lora_rank + c.qk_rope_head_dim), 0.5f);
  row[3] = NAN;
  data.cache.write(data.slots[0], row);
  const Output got = run_sparse(*backend, c, data);
  EXPECT_TRUE(std::isnan(got.out[0]));
}

}  // namespace
}  // namespace winnow::testing
