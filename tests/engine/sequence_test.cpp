#include "engine/sequence.h"

#include <gtest/gtest.h>

#include <vector>

namespace winnow::engine {
namespace {

constexpr int32_t kEos = 100;

struct Outcome {
  std::vector<int32_t> ids;
  FinishReason finish;
  std::optional<int32_t> matched;
  bool operator==(const Outcome&) const = default;
};

Outcome append(const std::vector<int32_t>& ids,
               int64_t max_new_tokens,
               int64_t min_new_tokens = 0,
               SamplingParams sampling = {}) {
  Sequence s;
  s.request.prompt_ids = {1, 2};
  s.request.sampling = std::move(sampling);
  s.tokens = s.request.prompt_ids;
  s.max_new_tokens = max_new_tokens;
  s.min_new_tokens = min_new_tokens;
  append_tokens(s, ids, std::vector<int32_t>{kEos}, {});
  return {{s.tokens.begin() + 2, s.tokens.end()}, s.finish, s.matched_stop_id};
}

// Fault B68: a stop inside a block of several tokens ends it there, whatever the length.
TEST(AppendTokens, AStopInsideABlockWins) {
  EXPECT_EQ(append({7, 8, 9, kEos, 30, 31}, 5),
            (Outcome{{7, 8, 9, kEos}, FinishReason::kStop, kEos}));
  EXPECT_EQ(append({7, 8, 9, 10, kEos, 31}, 5),
            (Outcome{{7, 8, 9, 10, kEos}, FinishReason::kStop, kEos}));
  EXPECT_EQ(append({7, 8, 9, 10, 11, kEos}, 5),
            (Outcome{{7, 8, 9, 10, 11}, FinishReason::kLength, std::nullopt}));
}

TEST(AppendTokens, EosAtEachPositionOfABlock) {
  for (size_t at = 0; at < 6; ++at) {
    std::vector<int32_t> block = {1, 2, 3, 4, 5, 6};
    block[at] = kEos;
    const Outcome outcome = append(block, 100);
    EXPECT_EQ(outcome.ids.size(), at + 1);
    EXPECT_EQ(outcome.finish, FinishReason::kStop);
  }
}

TEST(AppendTokens, MinTokensInsideABlock) {
  // The first three tokens cannot stop, the fourth can.
  EXPECT_EQ(append({kEos, 8, kEos, kEos, 9}, 100, 3),
            (Outcome{{kEos, 8, kEos, kEos}, FinishReason::kStop, kEos}));
}

TEST(AppendTokens, IgnoreEosLeavesStopIdsAlone) {
  SamplingParams sampling;
  sampling.ignore_eos = true;
  sampling.stop_token_ids = {55};
  EXPECT_EQ(append({kEos, 1, 55, 2}, 100, 0, sampling),
            (Outcome{{kEos, 1, 55}, FinishReason::kStop, 55}));
}

}  // namespace
}  // namespace winnow::engine
