// Sparse and dense attention over every latent layout, written through append_latent.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/backends.h"

namespace winnow {
namespace {

using layout::LatentLayout;

constexpr int kC = 40, kR = 8, kHeads = 3, kTokens = 150;

ops::ModelShape small_shape() {
  ops::ModelShape shape;
  shape.hidden_size = 64;
  shape.vocab_size = 16;
  shape.num_attention_heads = kHeads;
  shape.kv_lora_rank = kC;
  shape.qk_rope_head_dim = kR;
  shape.max_rows = kTokens;
  shape.max_context = kTokens;
  return shape;
}

TEST(CpuAttention, DenseOverTheCacheMatchesDirectSoftmax) {
  const auto backend = backends::make_cpu(2);
  backend->prepare(small_shape());
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto filled = [&](size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = normal(random);
    return values;
  };
  for (const LatentLayout which :
       {LatentLayout::kF32, LatentLayout::kBf16_1152, LatentLayout::kFp8_656,
        LatentLayout::kFp8_644, LatentLayout::kFp8_576}) {
    ops::LatentCache cache;
    cache.geometry = {which, kC, kR, 7};
    cache.page_stride_bytes = cache.geometry.page_bytes() + 24;
    cache.num_pages = 30;
    cache.scale = 1.0f / 64;
    std::vector<uint8_t> memory(static_cast<size_t>(cache.page_stride_bytes * cache.num_pages),
                                0xff);
    cache.data = memory.data();
    std::vector<int32_t> pages, positions, slots, seq(kTokens, 0);
    for (int p = 0; p < 22; ++p) pages.push_back((p * 13 + 5) % 30);
    for (int t = 0; t < kTokens; ++t) {
      positions.push_back(t);
      slots.push_back(pages[static_cast<size_t>(t / 7)] * 7 + t % 7);
    }
    const ops::BatchRows rows{kTokens,      1,          nullptr,      positions.data(),
                              slots.data(), seq.data(), pages.data(), 22};
    const std::vector<float> kv = filled(kTokens * (kC + kR)), weight(kC, 1.0f);
    const std::vector<float> cos(kTokens * kR / 2, 1.0f), sin(kTokens * kR / 2, 0.0f);
    backend->append_latent(
        {&rows, kv.data(), weight.data(), 1e-5f, {cos.data(), sin.data(), kR}, cache});
    const std::vector<float> ql = filled(kTokens * kHeads * kC), qr = filled(kTokens * kHeads * kR);
    std::vector<float> out(ql.size()), sparse_out(ql.size()), lse(kTokens * kHeads);
    backend->dense_mla(
        {&rows, ql.data(), qr.data(), kHeads, 0.125f, cache, out.data(), lse.data()});
    std::vector<int32_t> list(kTokens * kTokens, -1), lens(kTokens);
    for (int t = 0; t < kTokens; ++t) {
      std::copy(slots.begin(), slots.begin() + t + 1, list.begin() + t * kTokens);
      lens[static_cast<size_t>(t)] = t + 1;
    }
    backend->sparse_mla({&rows, ql.data(), qr.data(), list.data(), lens.data(), kTokens, kHeads,
                         0.125f, cache, sparse_out.data(), nullptr});
    EXPECT_EQ(out, sparse_out) << to_string(which);
    const double tolerance = which == LatentLayout::kF32 ? 1e-5 : 0.1;
    const int t = kTokens - 1;
    for (int h = 0; h < kHeads; ++h) {
      std::vector<double> logits;
      double sum = 0;
      std::vector<double> expected(kC);
      for (int s = 0; s <= t; ++s) {
        double square = 0, dot = 0;
        const float* row = kv.data() + s * (kC + kR);
        for (int i = 0; i < kC; ++i) square += row[i] * row[i];
        const double factor = 1 / std::sqrt(square / kC + 1e-5);
        for (int i = 0; i < kC; ++i)
          dot += ql[static_cast<size_t>((t * kHeads + h) * kC + i)] * row[i] * factor;
        for (int i = 0; i < kR; ++i)
          dot += qr[static_cast<size_t>((t * kHeads + h) * kR + i)] * row[kC + i];
        const double p = std::exp(0.125 * dot);
        sum += p;
        for (int i = 0; i < kC; ++i) expected[static_cast<size_t>(i)] += p * row[i] * factor;
      }
      for (int i = 0; i < kC; ++i) {
        EXPECT_NEAR(out[static_cast<size_t>((t * kHeads + h) * kC + i)],
                    expected[static_cast<size_t>(i)] / sum, tolerance)
            << to_string(which);
      }
      EXPECT_NEAR(lse[static_cast<size_t>(t * kHeads + h)], std::log(sum), tolerance);
    }
  }
}

}  // namespace
}  // namespace winnow
