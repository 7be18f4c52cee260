// Expert choice, experts and dense feed-forward blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

struct Routing {
  std::vector<int32_t> ids;
  std::vector<float> weights;
  bool operator==(const Routing&) const = default;
};

// A gate that passes the row's own logits through: hidden = experts, identity matrix.
Routing route_logits(ops::Backend& backend,
                     const std::vector<float>& logits,
                     const std::vector<float>& bias,
                     int32_t picks,
                     int32_t n_group = 1,
                     int32_t topk_group = 1,
                     float scaling = 1.0f) {
  const auto experts = static_cast<int64_t>(bias.size());
  const auto rows = static_cast<int64_t>(logits.size()) / experts;
  std::vector<float> identity(static_cast<size_t>(experts * experts), 0.0f);
  for (int64_t e = 0; e < experts; ++e) identity[static_cast<size_t>(e * experts + e)] = 1.0f;
  Routing r{std::vector<int32_t>(static_cast<size_t>(rows * picks), -1),
            std::vector<float>(static_cast<size_t>(rows * picks), NAN)};
  backend.route_experts({static_cast<int32_t>(rows),
                         logits.data(),
                         {identity.data(), DType::kF32, nullptr, experts, experts},
                         bias.data(),
                         n_group,
                         topk_group,
                         picks,
                         true,
                         scaling,
                         r.ids.data(),
                         r.weights.data()});
  return r;
}

std::vector<int32_t> best(const std::vector<double>& choices,
                          const std::vector<bool>& allowed,
                          int32_t count) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (allowed[i]) order.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return choices[static_cast<size_t>(a)] > choices[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

// B72: a bias in [6.817, 7.063] keeps its fp32 digits. Rows whose choice hangs on less than fp32
// rounding are left out (none of these should be many).
TEST(CpuRouter, MatchesDoubleReference) {
  const auto backend = prepared_cpu(2);
  for (const RouterCase& c : router_cases()) {
    SCOPED_TRACE(c.name);
    const StoredWeight gate = make_weight(DType::kBf16, c.experts, c.hidden, 61);
    const std::vector<float> x = CaseRandom(62).bf16_normals(c.rows * c.hidden, 0.1f);
    std::vector<float> bias;
    for (int64_t e = 0; e < c.experts; ++e) {
      bias.push_back(c.bias_low + (c.bias_high - c.bias_low) * static_cast<float>(e) /
                                      static_cast<float>(c.experts - 1));
    }
    CaseRandom(63).shuffle(bias);
    Routing r{std::vector<int32_t>(static_cast<size_t>(c.rows * c.picks), -1),
              std::vector<float>(static_cast<size_t>(c.rows * c.picks), NAN)};
    backend->route_experts({static_cast<int32_t>(c.rows), x.data(), gate.view(), bias.data(),
                            c.n_group, c.topk_group, c.picks, c.norm_topk_prob, c.scaling,
                            r.ids.data(), r.weights.data()});
    int64_t close_calls = 0;
    for (int64_t t = 0; t < c.rows; ++t) {
      std::vector<double> scores, choices;
      for (int64_t e = 0; e < c.experts; ++e) {
        double logit = 0;
        for (int64_t k = 0; k < c.hidden; ++k) {
          logit += static_cast<double>(x[static_cast<size_t>(t * c.hidden + k)]) * gate.value(e, k);
        }
        scores.push_back(1 / (1 + std::exp(-logit)));
        choices.push_back(scores.back() + bias[static_cast<size_t>(e)]);
      }
      const int64_t size = c.experts / c.n_group;
      std::vector<double> group_scores;
      for (int64_t g = 0; g < c.n_group; ++g) {
        std::vector<double> of_group(choices.begin() + g * size, choices.begin() + (g + 1) * size);
        std::sort(of_group.rbegin(), of_group.rend());
        group_scores.push_back(of_group[0] + (size > 1 ? of_group[1] : 0));
      }
      const std::vector<int32_t> groups =
          best(group_scores, std::vector<bool>(group_scores.size(), true), c.topk_group);
      std::vector<bool> allowed(choices.size(), false);
      for (const int32_t g : groups) {
        std::fill_n(allowed.begin() + g * size, size, true);
      }
      const std::vector<int32_t> expected = best(choices, allowed, c.picks);
      const std::vector<int32_t> got(r.ids.begin() + t * c.picks,
                                     r.ids.begin() + (t + 1) * c.picks);
      if (got != expected) {
        ++close_calls;
        double worst_taken = 1e9, best_left = -1e9;
        for (const int32_t e : got) worst_taken = std::min(worst_taken, choices[e]);
        for (const int32_t e : expected) {
          if (std::find(got.begin(), got.end(), e) == got.end()) {
            best_left = std::max(best_left, choices[e]);
          }
        }
        ASSERT_LT(best_left - worst_taken, 2e-6) << "row " << t;
        continue;
      }
      double sum = 0;
      for (const int32_t e : got) sum += scores[static_cast<size_t>(e)];
      for (int32_t i = 0; i < c.picks; ++i) {
        const double score = scores[static_cast<size_t>(got[static_cast<size_t>(i)])];
        ASSERT_NEAR(r.weights[static_cast<size_t>(t * c.picks + i)],
                    score / (c.norm_topk_prob ? sum : 1) * c.scaling, 1e-5);
      }
    }
    EXPECT_LE(close_calls, c.rows / 50);
  }
}

// B73: scores of 1.5e-8 beside a bias of 12 keep their own digits; equal logits, equal weights.
TEST(CpuRouter, WeightsComeFromTheUnbiasedScores) {
  const auto backend = prepared_cpu(1);
  for (const float logit : {-18.0f, -40.0f, -200.0f, 3.0f}) {
    const Routing r = route_logits(*backend, std::vector<float>(64, logit),
                                   std::vector<float>(64, 12.0f), 8, 1, 1, 2.5f);
    float sum = 0;
    for (const float w : r.weights) {
      EXPECT_GT(w, 0.0f);
      EXPECT_NEAR(w, 2.5 / 8, 1e-6);
      sum += w;
    }
    EXPECT_NEAR(sum, 2.5, 1e-5);
  }
  std::vector<float> logits(64, -18.0f), bias(64, 0.0f);
  logits[7] = -17.0f;
  bias[7] = bias[9] = 12.0f;
  const Routing r = route_logits(*backend, logits, bias, 2);
  EXPECT_EQ(r.ids, (std::vector<int32_t>{7, 9}));
  EXPECT_NEAR(r.weights[0], std::exp(1) / (1 + std::exp(1)), 1e-5);
}

// B74: exact ties at the border take the lower expert; NaN logits still give distinct experts.
TEST(CpuRouter, TiesAndNan) {
  const auto backend = prepared_cpu(1);
  std::vector<float> bias(64, 0.5f);
  for (int e = 20; e < 24; ++e) bias[static_cast<size_t>(e)] = 0.75f;
  const Routing r = route_logits(*backend, std::vector<float>(64, -40.0f), bias, 8);
  EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1, 2, 3, 20, 21, 22, 23}));
  for (const float w : r.weights) EXPECT_TRUE(std::isfinite(w));
  const Routing nan = route_logits(*backend, std::vector<float>(64, NAN), bias, 8);
  EXPECT_EQ(std::set<int32_t>(nan.ids.begin(), nan.ids.end()).size(), 8u);
  for (const int32_t e : nan.ids) EXPECT_TRUE(e >= 0 && e < 64);
}

struct Expert {
  StoredWeight gate, up, down;
  ops::MlpWeights view() const { return {gate.view(), up.view(), down.view()}; }
};

Expert make_expert(DType dtype, int64_t hidden, int64_t intermediate, uint64_t seed) {
  return {make_weight(dtype, intermediate, hidden, 3 * seed),
          make_weight(dtype, intermediate, hidden, 3 * seed + 1),
          make_weight(dtype, hidden, intermediate, 3 * seed + 2)};
}

// Scale and quotient in fp32 as the contract says: bf16 inputs often lie exactly between two codes.
std::vector<double> quantized(std::vector<double> x, bool fp8) {
  if (!fp8) return x;
  for (size_t g = 0; g < x.size(); g += 128) {
    float amax = 1e-10f;
    const size_t end = std::min(x.size(), g + 128);
    for (size_t i = g; i < end; ++i) amax = std::max(amax, std::fabs(static_cast<float>(x[i])));
    const float scale = amax / 448.0f;
    for (size_t i = g; i < end; ++i) {
      const uint8_t code = layout::f32_to_e4m3(static_cast<float>(x[i]) / scale);
      x[i] = static_cast<double>(layout::e4m3_to_f32(code)) * scale;
    }
  }
  return x;
}

std::vector<double> product(const StoredWeight& w, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t n = 0; n < w.out; ++n) {
    double sum = 0;
    for (int64_t k = 0; k < w.in; ++k) sum += w.value(n, k) * x[static_cast<size_t>(k)];
    y.push_back(sum);
  }
  return y;
}

std::vector<double> reference_mlp(const Expert& e, const std::vector<double>& x, bool fp8) {
  const std::vector<double> in = quantized(x, fp8);
  std::vector<double> gate = product(e.gate, in);
  const std::vector<double> up = product(e.up, in);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return product(e.down, quantized(gate, fp8));
}

struct MoeData {
  std::vector<Expert> experts;
  Expert shared;
  std::vector<float> x;
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

MoeData make_moe(const MoeCase& c) {
  MoeData data;
  for (int64_t e = 0; e < c.experts; ++e) {
    data.experts.push_back(
        make_expert(c.dtype, c.hidden, c.intermediate, static_cast<uint64_t>(100 + e)));
  }
  data.shared = make_expert(c.dtype, c.hidden, c.intermediate, 99);
  data.x = CaseRandom(71).bf16_normals(c.rows * c.hidden, 0.05f);
  CaseRandom random(72);
  for (int64_t t = 0; t < c.rows; ++t) {
    std::vector<int32_t> all(static_cast<size_t>(c.experts));
    std::iota(all.begin(), all.end(), 0);
    random.shuffle(all);
    all.resize(static_cast<size_t>(c.picks));
    std::sort(all.begin(), all.end());
    data.ids.insert(data.ids.end(), all.begin(), all.end());
    for (int32_t i = 0; i < c.picks; ++i) data.weights.push_back(random.uniform());
  }
  return data;
}

std::vector<float> run_moe(
    ops::Backend& backend, const MoeCase& c, const MoeData& data, int64_t first, int64_t rows) {
  std::vector<ops::MlpWeights> experts;
  for (const Expert& e : data.experts) experts.push_back(e.view());
  const ops::MlpWeights shared = data.shared.view();
  std::vector<float> out(static_cast<size_t>(rows * c.hidden), NAN);
  backend.moe({static_cast<int32_t>(rows), data.x.data() + first * c.hidden,
               data.ids.data() + first * c.picks, data.weights.data() + first * c.picks, c.picks,
               experts.data(), static_cast<int32_t>(c.experts), c.shared ? &shared : nullptr,
               c.fp8_activations, out.data()});
  return out;
}

std::unique_ptr<backends::CpuBackend> prepared_for(const MoeCase& c,
                                                   int threads,
                                                   const backends::KernelTable& kernels) {
  auto backend = std::make_unique<backends::CpuBackend>(threads, kernels);
  ops::ModelShape shape = case_shape();
  shape.hidden_size = static_cast<int32_t>(c.hidden);
  shape.max_rows = 16;  // chunks of 16 rows
  backend->prepare(shape);
  return backend;
}

TEST(CpuMoe, MatchesDoubleReferenceAndRowsLeaveNoTrace) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    for (const MoeCase& c : moe_cases()) {
      SCOPED_TRACE(std::string(kernels->isa) + " " + c.name);
      const auto backend = prepared_for(c, 2, *kernels);
      const MoeData data = make_moe(c);
      const std::vector<float> all = run_moe(*backend, c, data, 0, c.rows);
      ASSERT_EQ(all, run_moe(*prepared_for(c, 1, *kernels), c, data, 0, c.rows));
      for (const int64_t step : {1, 3}) {
        std::vector<float> parts;
        for (int64_t t = 0; t < c.rows; t += step) {
          const std::vector<float> part = run_moe(*backend, c, data, t, std::min(step, c.rows - t));
          parts.insert(parts.end(), part.begin(), part.end());
        }
        ASSERT_EQ(all, parts);
      }
      for (const int64_t t : {int64_t{0}, c.rows / 2, c.rows - 1}) {
        const std::vector<double> x(data.x.begin() + t * c.hidden,
                                    data.x.begin() + (t + 1) * c.hidden);
        std::vector<double> expected(x.size(), 0.0);
        if (c.shared) expected = reference_mlp(data.shared, x, c.fp8_activations);
        for (int32_t i = 0; i < c.picks; ++i) {
          const auto at = static_cast<size_t>(t * c.picks + i);
          const std::vector<double> y =
              reference_mlp(data.experts[static_cast<size_t>(data.ids[at])], x, c.fp8_activations);
          for (size_t n = 0; n < y.size(); ++n) expected[n] += data.weights[at] * y[n];
        }
        double size = 0;
        for (const double v : expected) size += v * v / static_cast<double>(c.hidden);
        // With fp8 a product close to a rounding border may fall on the other side.
        const double tolerance = (c.fp8_activations ? 0.02 : 2e-5) * std::sqrt(size) + 1e-7;
        for (int64_t n = 0; n < c.hidden; ++n) {
          ASSERT_NEAR(all[static_cast<size_t>(t * c.hidden + n)], expected[static_cast<size_t>(n)],
                      tolerance);
        }
      }
    }
  }
}

// Bit for bit what the ops give one by one: the product is rounded again before down.
TEST(CpuMlp, IsItsThreeLinears) {
  const auto backend = prepared_cpu(2);
  const int64_t rows = 6, hidden = 512, intermediate = 384;
  const Expert e = make_expert(DType::kE4m3, hidden, intermediate, 5);
  const std::vector<float> x = CaseRandom(81).bf16_normals(rows * hidden, 0.05f);
  const auto linear = [&](const std::vector<float>& in, const StoredWeight& w) {
    std::vector<float> y(static_cast<size_t>(rows * w.out), NAN);
    backend->linear({static_cast<int32_t>(rows), in.data(), w.view(), true, false, y.data()});
    return y;
  };
  std::vector<float> gate = linear(x, e.gate);
  const std::vector<float> up = linear(x, e.up);
  for (int64_t t = 0; t < rows; ++t) {
    backends::best_kernels().silu_mul(gate.data() + t * intermediate, up.data() + t * intermediate,
                                      intermediate);
  }
  std::vector<float> out(x.size(), NAN);
  backend->mlp({static_cast<int32_t>(rows), x.data(), e.view(), true, out.data()});
  EXPECT_EQ(out, linear(gate, e.down));
}

TEST(CpuMlp, MatchesTheSameBlockAsAnExpert) {
  const auto backend = prepared_cpu(2);
  const int64_t rows = 6, hidden = 512;
  const Expert e = make_expert(DType::kE4m3, hidden, 384, 5);
  const std::vector<float> x = CaseRandom(81).bf16_normals(rows * hidden, 0.05f);
  std::vector<float> dense(x.size(), NAN), routed(x.size(), NAN);
  backend->mlp({static_cast<int32_t>(rows), x.data(), e.view(), true, dense.data()});
  const std::vector<int32_t> ids(static_cast<size_t>(rows), 0);
  const std::vector<float> weights(static_cast<size_t>(rows), 1.0f);
  const ops::MlpWeights view = e.view();
  backend->moe({static_cast<int32_t>(rows), x.data(), ids.data(), weights.data(), 1, &view, 1,
                nullptr, true, routed.data()});
  EXPECT_EQ(dense, routed);
}

}  // namespace
}  // namespace winnow::testing
