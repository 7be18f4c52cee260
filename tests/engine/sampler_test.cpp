#include "engine/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "engine/philox.h"

namespace winnow::engine {
namespace {

constexpr int32_t kEos = 3;
using Row = std::vector<float>;

Row random_row(int32_t size, uint32_t seed, float deviation = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  Row row(static_cast<size_t>(size));
  for (float& x : row) x = normal(random);
  return row;
}

GenerateRequest request_of(SamplingParams sampling) {
  GenerateRequest request;
  request.prompt_ids = {1, 2};
  request.sampling = std::move(sampling);
  if (!request.sampling.seed) request.sampling.seed = 1;
  return request;
}

int32_t sample_one(const Row& row,
                   SamplingParams sampling,
                   const std::vector<int32_t>& generated = {}) {
  Sampler sampler(static_cast<int32_t>(row.size()), {kEos});
  const GenerateRequest request = request_of(std::move(sampling));
  std::vector<int32_t> tokens = request.prompt_ids;
  tokens.insert(tokens.end(), generated.begin(), generated.end());
  auto result = sampler.sample(row, request, tokens);
  EXPECT_TRUE(result.ok()) << result.status().message;
  return result.ok() ? result.value() : -1;
}

// What ever comes out of many draws.
std::set<int32_t> support(const Row& row, SamplingParams sampling, int num_draws = 4000) {
  Sampler sampler(static_cast<int32_t>(row.size()), {kEos});
  std::set<int32_t> ids;
  for (int i = 0; i < num_draws; ++i) {
    sampling.seed = static_cast<uint64_t>(i);
    const GenerateRequest request = request_of(sampling);
    ids.insert(sampler.sample(row, request, request.prompt_ids).value());
  }
  return ids;
}

Row logs(std::vector<double> probabilities) {
  Row row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p)));
  return row;
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  Row row(100, 0.0f);
  row[20] = row[40] = 2.5f;
  for (const float temperature : {0.0f, 1e-7f}) {
    EXPECT_EQ(sample_one(row, {.temperature = temperature}), 20);
  }
  EXPECT_EQ(sample_one(row, {.temperature = 5, .top_k = 1}), 20);
}

// Fault B74: NaN logits are an error, never token 0.
TEST(Sampler, NanIsAnError) {
  Sampler sampler(100, {kEos});
  Row row = random_row(100, 1);
  row[77] = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0f, 1.0f}) {
    const GenerateRequest request = request_of({.temperature = temperature});
    EXPECT_EQ(sampler.sample(row, request, request.prompt_ids).status().code,
              StatusCode::kInternal);
  }
  EXPECT_FALSE(sampler.score(row, 0, {}).ok());
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  const std::vector<double> p = {0.5, 0.25, 0.15, 0.1};
  Sampler sampler(4, {kEos});
  for (const float temperature : {1.0f, 0.5f, 2.0f}) {
    std::vector<double> expected;
    for (const double x : p) expected.push_back(std::pow(x, 1 / temperature));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    std::vector<int> counts(4);
    const int n = 20000;
    const Row row = logs(p);
    for (int i = 0; i < n; ++i) {
      const auto request = request_of({.temperature = temperature, .seed = uint64_t(i)});
      ++counts[static_cast<size_t>(sampler.sample(row, request, request.prompt_ids).value())];
    }
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i] / double(n), expected[i] / sum, 0.015);
  }
}

TEST(Sampler, FiltersAreJoint) {
  const Row row = logs({0.4, 0.3, 0.1, 0.1, 0.06, 0.04});
  using Ids = std::set<int32_t>;
  EXPECT_EQ(support(row, {}), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(support(row, {.top_k = 2}), (Ids{0, 1}));
  EXPECT_EQ(support(row, {.top_k = 3}), (Ids{0, 1, 2}));  // a tie: the lower id stays
  EXPECT_EQ(support(row, {.top_p = 0.5f}), (Ids{0, 1}));  // the one that crosses stays
  EXPECT_EQ(support(row, {.top_p = 0.39f}), (Ids{0}));
  EXPECT_EQ(support(row, {.top_p = 0.75f}), (Ids{0, 1, 2}));
  EXPECT_EQ(support(row, {.min_p = 0.2f}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(support(row, {.min_p = 1.0f}), (Ids{0}));
  // Joint: top_p looks at the whole distribution. After top_k 3 the first two would hold 0.875 of
  // the rest, yet they hold 0.7 of everything, so the third stays.
  EXPECT_EQ(support(row, {.top_p = 0.75f, .top_k = 3}), (Ids{0, 1, 2}));
  EXPECT_EQ(support(row, {.top_p = 0.95f, .top_k = 2}), (Ids{0, 1}));
  EXPECT_EQ(support(row, {.top_p = 0.95f, .top_k = 5, .min_p = 0.5f}), (Ids{0, 1}));
}

// The kept set by a plain sort, against the sampler's bins.
std::vector<int32_t> kept_by_sorting(const Row& row, const SamplingParams& s) {
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return row[a] > row[b]; });
  std::vector<double> p(row.size());
  double total = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    p[i] = std::exp(double(row[i] - row[static_cast<size_t>(order[0])]) / s.temperature);
    total += p[i];
  }
  std::vector<int32_t> kept;
  double before = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto id = static_cast<size_t>(order[rank]);
    if (s.top_k > 0 && rank >= static_cast<size_t>(s.top_k)) break;
    if (rank > 0 && before >= double(s.top_p) * total) break;
    before += p[id];
    if (p[id] >= double(s.min_p)) kept.push_back(order[rank]);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(Sampler, DrawsWhatAPlainSortWouldDraw) {
  int num_different = 0;
  int num_draws = 0;
  EXPECT_TRUE(rc::check("same token as by sorting", [&] {
    const int32_t size = *rc::gen::element(5, 64, 1000, 5000);
    Row row = random_row(size, *rc::gen::arbitrary<uint32_t>(),
                         *rc::gen::element(0.0f, 0.01f, 1.0f, 8.0f, 60.0f));
    if (*rc::gen::arbitrary<bool>()) {
      for (float& x : row) x = std::round(x);  // ties
    }
    SamplingParams s;
    s.temperature = *rc::gen::element(0.1f, 0.7f, 1.0f, 3.0f, 100.0f);
    s.top_k = *rc::gen::element(-1, 2, 5, 50, 900, 100000);
    s.top_p = *rc::gen::element(1.0f, 0.999f, 0.9f, 0.5f, 0.01f);
    s.min_p = *rc::gen::element(0.0f, 0.0f, 0.05f, 0.5f);
    s.seed = *rc::gen::arbitrary<uint64_t>();
    const std::vector<int32_t> kept = kept_by_sorting(row, s);
    const float peak = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (const int32_t id : kept) total += std::exp(double(row[id] - peak) / s.temperature);
    double rest = total * uniform_at(*s.seed, 0, 2);
    int32_t expected = kept.back();
    for (const int32_t id : kept) {
      rest -= std::exp(double(row[id] - peak) / s.temperature);
      if (rest < 0) {
        expected = id;
        break;
      }
    }
    ++num_draws;
    const int32_t id = sample_one(row, s);
    if (id != expected) ++num_different;  // rounding at a border
    RC_ASSERT(std::binary_search(kept.begin(), kept.end(), id) || s.top_p < 1);
  }));
  EXPECT_LE(num_different, num_draws / 50);
}

TEST(Sampler, SeedsHoldWhateverTheBatchAndDifferByChoice) {
  const Row row = random_row(2000, 5);
  const Row other = random_row(2000, 6);
  Sampler sampler(2000, {kEos});
  GenerateRequest request = request_of({.seed = 42});
  std::vector<int32_t> alone;
  std::vector<int32_t> tokens = request.prompt_ids;
  for (int i = 0; i < 20; ++i) {
    alone.push_back(sampler.sample(row, request, tokens).value());
    tokens.push_back(alone.back());
  }
  tokens = request.prompt_ids;
  std::vector<int32_t> among_others;
  const GenerateRequest mate = request_of({.top_p = 0.5f, .frequency_penalty = 1, .seed = 7});
  for (int i = 0; i < 20; ++i) {
    sampler.sample(other, mate, tokens).value();
    among_others.push_back(sampler.sample(row, request, tokens).value());
    tokens.push_back(among_others.back());
  }
  EXPECT_EQ(alone, among_others);
  request.choice = 1;
  tokens = request.prompt_ids;
  std::vector<int32_t> second_choice;
  for (int i = 0; i < 20; ++i) {
    second_choice.push_back(sampler.sample(row, request, tokens).value());
    tokens.push_back(second_choice.back());
  }
  EXPECT_NE(alone, second_choice);
}

TEST(Sampler, PenaltiesCountGeneratedTokensOnly) {
  Row row(10, 0.0f);
  row[1] = 2.0f;  // id 1 is in the prompt: no penalty for it
  row[5] = 1.9f;
  EXPECT_EQ(sample_one(row, {.temperature = 0, .presence_penalty = 2.0f}), 1);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .presence_penalty = 0.2f}, {1}), 5);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .frequency_penalty = 0.06f}, {1}), 1);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .frequency_penalty = 0.06f}, {1, 1}), 5);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .presence_penalty = 0.06f}, {1, 1}), 1);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .repetition_penalty = 1.1f}, {1}), 5);
  Row negative(10, -9.0f);
  negative[1] = -2.0f;
  negative[5] = -2.1f;
  EXPECT_EQ(sample_one(negative, {.temperature = 0, .repetition_penalty = 1.1f}, {1}), 5);
}

TEST(Sampler, PenaltiesLeaveNoTraceForTheNextRequest) {
  Row row = random_row(50, 9);
  Sampler sampler(50, {kEos});
  const auto greedy = request_of({.temperature = 0});
  const int32_t before = sampler.sample(row, greedy, greedy.prompt_ids).value();
  const auto penal = request_of({.temperature = 0, .frequency_penalty = 100});
  sampler.sample(row, penal, std::vector<int32_t>{1, 2, before, before}).value();
  EXPECT_EQ(sampler.sample(row, greedy, greedy.prompt_ids).value(), before);
}

TEST(Sampler, BiasAndMinTokens) {
  Row row(10, 0.0f);
  row[kEos] = 9;
  row[6] = 8;
  row[7] = 7;
  EXPECT_EQ(sample_one(row, {.temperature = 0}), kEos);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .logit_bias = {{8, 20.0f}}}), 8);
  EXPECT_EQ(sample_one(row, {.temperature = 0, .logit_bias = {{kEos, -100.0f}}}), 6);
  SamplingParams sampling{.min_new_tokens = 2, .temperature = 0, .stop_token_ids = {6}};
  EXPECT_EQ(sample_one(row, sampling), 7);
  EXPECT_EQ(sample_one(row, sampling, {1}), 7);
  EXPECT_EQ(sample_one(row, sampling, {1, 1}), kEos);
  sampling.ignore_eos = true;  // EOS stops nothing then, and stays allowed; the stop id does not
  EXPECT_EQ(sample_one(row, sampling), kEos);
  sampling.logit_bias = {{kEos, -100.0f}};
  EXPECT_EQ(sample_one(row, sampling), 7);
}

TEST(Sampler, NothingLeftIsAnError) {
  Sampler sampler(2, {0, 1});
  const auto request = request_of({.min_new_tokens = 1});
  EXPECT_FALSE(sampler.sample(Row{1, 2}, request, request.prompt_ids).ok());
}

TEST(Sampler, LogprobsAreOfRawLogits) {
  const Row row = random_row(500, 11);
  Sampler sampler(500, {kEos});
  double sum = 0;
  for (const float x : row) sum += std::exp(double(x));
  LogprobOptions options;
  options.top = 5;
  options.token_ids = {7, 499};
  const TokenLogprob out = sampler.score(row, 42, options).value();
  EXPECT_EQ(out.id, 42);
  EXPECT_NEAR(out.logprob, row[42] - std::log(sum), 1e-5);
  ASSERT_EQ(out.top.size(), 5u);
  EXPECT_EQ(out.top[0].first, std::max_element(row.begin(), row.end()) - row.begin());
  for (const auto& [id, logprob] : out.top) {
    EXPECT_NEAR(logprob, row[static_cast<size_t>(id)] - std::log(sum), 1e-5);
  }
  ASSERT_EQ(out.requested.size(), 2u);
  EXPECT_EQ(out.requested[1].first, 499);
  EXPECT_NEAR(out.requested[1].second, row[499] - std::log(sum), 1e-5);
}

}  // namespace
}  // namespace winnow::engine
