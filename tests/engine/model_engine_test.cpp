// The whole engine over a real model: what a request answers, log-probs to the last bit, does not
// depend on chunking, neighbours, prefix hits or preemptions (faults B40, B41, B46, B47, B115).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/model_executor.h"
#include "testing/collecting_sink.h"
#include "testing/flush.h"
#include "testing/loaded_fixture.h"

namespace winnow::engine {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using testing::CollectingSink;
using testing::FixtureOptions;
using testing::LoadedFixture;

struct Setting {
  const char* fixture;
  LatentLayout latent;
  IndexKeyLayout index_key;
};

std::string name_of(const Setting& s) {
  return std::string(s.fixture) + "_" + layout::to_string(s.latent);
}

void PrintTo(const Setting& s, std::ostream* out) { *out << name_of(s); }

// Everything about an answer that must not change.
struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logprobs{};         // of ids
  std::vector<float> prompt_logprobs{};  // of prompt tokens 1..
  int64_t cached_tokens = 0;

  bool same_bits(const Answer& other) const {
    return ids == other.ids && equal(logprobs, other.logprobs) &&
           equal(prompt_logprobs, other.prompt_logprobs);
  }
  static bool equal(const std::vector<float>& a, const std::vector<float>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
      return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
    });
  }
};

class ModelEngine : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    const Setting& s = GetParam();
    fixture_ = std::make_unique<LoadedFixture>(
        s.fixture, FixtureOptions{.precision = model::Precision::kDefault,
                                  .latent_layout = s.latent,
                                  .index_key_layout = s.index_key,
                                  .num_pages = 1});
  }

  std::unique_ptr<Engine> make_engine(int32_t num_pages, int32_t chunk, bool prefix_cache = true) {
    const EngineOptions options{.max_running_requests = 8,
                                .chunked_prefill_size = chunk,
                                .page_size = 4,
                                .num_pages = num_pages,
                                .context_length = 128,
                                .prefix_cache = prefix_cache,
                                .seed = 7};
    return std::make_unique<Engine>(
        options,
        std::make_unique<ModelExecutor>(options, fixture_->config, fixture_->numerics,
                                        fixture_->weights, *fixture_->backend),
        clock_);
  }

  GenerateRequest request(uint32_t seed, int num_tokens, int64_t max_new_tokens) const {
    GenerateRequest request;
    request.rid = "r" + std::to_string(seed) + "." + std::to_string(num_tokens);
    std::mt19937 random(seed);
    for (int i = 0; i < num_tokens; ++i) {
      request.prompt_ids.push_back(static_cast<int32_t>(random() % fixture_->config.vocab_size));
    }
    request.sampling.max_new_tokens = max_new_tokens;
    request.sampling.temperature = seed % 2 == 0 ? 0.0f : 1.0f;
    request.sampling.seed = seed;
    request.sampling.ignore_eos = true;
    request.logprobs.output = true;
    return request;
  }

  static Answer answer_of(CollectingSink& collector) {
    const TokenEvent all = collector.wait();
    EXPECT_EQ(all.finish, FinishReason::kLength) << all.error.message;
    Answer answer{.ids = all.ids, .cached_tokens = all.cached_tokens};
    for (const TokenLogprob& l : all.logprobs) answer.logprobs.push_back(l.logprob);
    for (const TokenLogprob& l : all.prompt_logprobs) {
      if (!std::isnan(l.logprob)) answer.prompt_logprobs.push_back(l.logprob);
    }
    EXPECT_EQ(answer.ids.size(), answer.logprobs.size());
    return answer;
  }

  Answer run(Engine& engine, GenerateRequest request) {
    auto collector = std::make_shared<CollectingSink>();
    const Status status = engine.submit(std::move(request), collector);
    EXPECT_TRUE(status.ok()) << status.message;
    return answer_of(*collector);
  }

  std::unique_ptr<LoadedFixture> fixture_;
  SteadyClock clock_;
};

TEST_P(ModelEngine, PrefixHitsOfAnyLengthAndChunksOfAnySize) {
  const GenerateRequest whole = request(2, 37, 6);
  const Answer want = run(*make_engine(64, 64, false), whole);
  EXPECT_EQ(want.ids.size(), 6u);
  for (const int32_t chunk : {1, 3, 8, 64}) {
    auto engine = make_engine(64, chunk);
    for (const size_t shared : {0, 1, 3, 4, 5, 17, 36, 37}) {
      // A request that leaves just that prefix in the cache, then the one under test.
      ASSERT_TRUE(testing::flush(*engine).get().ok());
      GenerateRequest first = request(3, 45, 1);
      std::copy_n(whole.prompt_ids.begin(), shared, first.prompt_ids.begin());
      run(*engine, first);
      const Answer got = run(*engine, whole);
      EXPECT_GE(got.cached_tokens, static_cast<int64_t>(std::min<size_t>(shared, 36)));
      EXPECT_TRUE(got.same_bits(want)) << "chunk " << chunk << " shared " << shared;
    }
    const Answer again = run(*engine, whole);  // all of it, and more, is cached
    EXPECT_EQ(again.cached_tokens, 36);
    EXPECT_TRUE(again.same_bits(want));
  }
}

TEST_P(ModelEngine, PromptLogprobsColdAndWarm) {
  GenerateRequest scored = request(4, 20, 2);
  scored.logprobs.prompt_start = 0;
  const Answer want = run(*make_engine(64, 64, false), scored);
  EXPECT_EQ(want.prompt_logprobs.size(), 19u);
  auto engine = make_engine(64, 8);
  EXPECT_TRUE(run(*engine, scored).same_bits(want));
  EXPECT_TRUE(run(*engine, scored).same_bits(want));
}

TEST_P(ModelEngine, HundredPreemptionsChangeNothing) {
  constexpr int kRequests = 12;
  std::vector<GenerateRequest> requests;
  std::vector<Answer> want;
  auto alone = make_engine(64, 64, false);
  for (uint32_t i = 0; i < kRequests; ++i) {
    requests.push_back(request(100 + i, 5 + static_cast<int>(i) * 2, 30));
    want.push_back(run(*alone, requests.back()));
  }
  // 18 pages of 4 tokens hold the longest request alone, but not two of them.
  auto crowded = make_engine(18, 16);
  for (int round = 0; crowded->stats().preemptions < 100; ++round) {
    ASSERT_LT(round, 50) << crowded->stats().preemptions << " preemptions only";
    std::vector<std::shared_ptr<CollectingSink>> collectors;
    for (const GenerateRequest& r : requests) {
      collectors.push_back(std::make_shared<CollectingSink>());
      const Status status = crowded->submit(r, collectors.back());
      ASSERT_TRUE(status.ok()) << status.message;
    }
    for (int i = 0; i < kRequests; ++i) {
      EXPECT_TRUE(answer_of(*collectors[i]).same_bits(want[i])) << "round " << round << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings,
    ModelEngine,
    ::testing::Values(Setting{"tiny_v32", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132},
                      Setting{"tiny_glm", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132},
                      Setting{"tiny_glm52", LatentLayout::kFp8_644, IndexKeyLayout::kBf16_256},
                      Setting{"tiny_glm52", LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132},
                      Setting{"tiny_v3", LatentLayout::kF32, IndexKeyLayout::kNone}),
    [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace winnow::engine
