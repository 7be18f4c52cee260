#include "server/choice_output.h"

#include <gtest/gtest.h>

#include "testing/byte_tokenizer.h"

namespace winnow::server {
namespace {

using engine::FinishReason;
using testing::byte_ids;
using testing::ByteTokenizer;

struct Result {
  std::string text;
  int64_t tokens = 0;
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> matched;
  std::string last_delta;
};

engine::TokenEvent event_of(std::string_view text, FinishReason finish = FinishReason::kNone) {
  engine::TokenEvent event;
  event.ids = byte_ids(text);
  event.finish = finish;
  for (const int32_t id : event.ids) event.logprobs.emplace_back().id = id;
  return event;
}

// Feeds ids in steps of step_size, then EOS in the last step.
Result run(const ByteTokenizer& tokenizer,
           OutputOptions options,
           std::vector<int32_t> ids,
           size_t step_size) {
  ChoiceOutput output(tokenizer, std::move(options));
  ids.push_back(ByteTokenizer::kEos);
  Result result;
  for (size_t begin = 0; begin < ids.size() && !output.finished(); begin += step_size) {
    engine::TokenEvent event;
    const size_t end = std::min(ids.size(), begin + step_size);
    event.ids.assign(ids.begin() + static_cast<ptrdiff_t>(begin),
                     ids.begin() + static_cast<ptrdiff_t>(end));
    if (end == ids.size()) {
      event.finish = FinishReason::kStop;
      event.matched_stop_id = ByteTokenizer::kEos;
    }
    result.last_delta = output.append(std::move(event)).text;
    result.text += result.last_delta;
  }
  result.tokens = output.completion_tokens();
  result.finish = output.finish();
  result.matched = output.matched_string();
  return result;
}

// B94: stop strings in any cut.
TEST(ChoiceOutput, StopsAtAStopStringHoweverTheTextIsCut) {
  const ByteTokenizer tokenizer;
  for (size_t step = 1; step <= 8; ++step) {
    const Result r = run(tokenizer, {.stop = {"er mo"}}, byte_ids("Silver moon rises"), step);
    EXPECT_EQ(r.text, "Silv") << step;
    EXPECT_EQ(r.matched, "er mo");
    EXPECT_EQ(r.tokens, 9) << "tokens up to the end of the match, not of the step";
    EXPECT_EQ(r.finish, FinishReason::kStop);
  }
}

TEST(ChoiceOutput, StopInsideOneToken) {
  const ByteTokenizer tokenizer({"XYZ"});
  std::vector<int32_t> ids = byte_ids("ab");
  ids.push_back(ByteTokenizer::kFirstWord);
  ids.push_back('c');
  for (size_t step = 1; step <= 4; ++step) {
    const Result r = run(tokenizer, {.stop = {"XY"}}, ids, step);
    EXPECT_EQ(r.text, "ab");
    EXPECT_EQ(r.tokens, 3);
  }
}

TEST(ChoiceOutput, SharedPrefixesOverlapsAndUnfinishedStops) {
  const ByteTokenizer tokenizer;
  for (size_t step = 1; step <= 8; ++step) {
    EXPECT_EQ(run(tokenizer, {.stop = {"endless", "ending"}}, byte_ids("an ending"), step).text,
              "an ");
    EXPECT_EQ(run(tokenizer, {.stop = {"aab"}}, byte_ids("xaaab"), step).text, "xa");
    const Result never = run(tokenizer, {.stop = {"moonshine"}}, byte_ids("full moons"), step);
    EXPECT_EQ(never.text, "full moons");
    EXPECT_EQ(never.matched, std::nullopt);
    EXPECT_EQ(never.tokens, 11);
  }
}

TEST(ChoiceOutput, NoStopTrimKeepsTheStop) {
  const ByteTokenizer tokenizer;
  for (size_t step = 1; step <= 8; ++step) {
    const OutputOptions keep{.stop = {"er mo"}, .no_stop_trim = true};
    EXPECT_EQ(run(tokenizer, keep, byte_ids("Silver moon"), step).text, "Silver mo");
    const OutputOptions keep_token{.stop = {}, .no_stop_trim = true, .skip_special_tokens = false};
    EXPECT_EQ(run(tokenizer, keep_token, byte_ids("a"), step).text, "a<|end|>");
    EXPECT_EQ(run(tokenizer, {.skip_special_tokens = false}, byte_ids("a"), step).text, "a");
  }
}

// B85: characters split over tokens.
TEST(ChoiceOutput, NeverHalfACharacter) {
  const ByteTokenizer tokenizer;
  const std::string text = "🙂🙂 👩‍👩‍👧 한 中";
  for (size_t step = 1; step <= 4; ++step) {
    const Result r = run(tokenizer, {}, byte_ids(text), step);
    EXPECT_EQ(r.text, text);
    const Result stopped = run(tokenizer, {.stop = {"한"}}, byte_ids(text), step);
    EXPECT_EQ(stopped.text, "🙂🙂 👩‍👩‍👧 ");
  }
  EXPECT_EQ(run(tokenizer, {}, {0xf0, 0x9f}, 1).text, "\xef\xbf\xbd");
}

TEST(ChoiceOutput, EventsAfterTheEndChangeNothing) {
  const ByteTokenizer tokenizer;
  ChoiceOutput output(tokenizer, {.stop = {"b"}});
  EXPECT_EQ(output.append(event_of("abc")).text, "a");
  EXPECT_TRUE(output.hit_stop_string());
  const ChoiceDelta late = output.append(event_of("de", FinishReason::kStop));
  EXPECT_TRUE(late.text.empty());
  EXPECT_TRUE(late.ids.empty());
  EXPECT_EQ(output.completion_tokens(), 2);
}

TEST(ChoiceOutput, LogprobsFollowTheTokensThatCount) {
  const ByteTokenizer tokenizer;
  ChoiceOutput output(tokenizer, {.stop = {"b"}});
  const ChoiceDelta delta = output.append(event_of("abc"));
  ASSERT_EQ(delta.logprobs.size(), 2u);
  EXPECT_EQ(delta.logprobs[1].id, 'b');
  EXPECT_EQ(delta.ids, byte_ids("ab"));
}

}  // namespace
}  // namespace winnow::server
