#include "text/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace winnow::text {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> matched;
  bool operator==(const Outcome&) const = default;
};

Outcome run(std::string_view text,
            const std::vector<std::string>& stops,
            size_t step,
            bool keep_stop = false) {
  StopMatcher matcher(stops, keep_stop);
  Outcome outcome;
  for (size_t at = 0; at < text.size(); at += step) {
    auto output = matcher.append(text.substr(at, step));
    outcome.text += output.text;
    if (output.matched) outcome.matched = output.matched;
  }
  outcome.text += matcher.finish();
  return outcome;
}

// B94: the same in any cuts.
void expect_in_all_cuts(std::string_view text,
                        const std::vector<std::string>& stops,
                        const Outcome& expected,
                        bool keep_stop = false) {
  for (size_t step = 1; step <= text.size() + 1; ++step) {
    const Outcome outcome = run(text, stops, step, keep_stop);
    EXPECT_EQ(outcome.text, expected.text) << step;
    EXPECT_EQ(outcome.matched, expected.matched) << step;
  }
}

TEST(StopMatcher, AcrossTokenBorders) {
  expect_in_all_cuts("Silver moon rises", {"er mo"}, {"Silv", "er mo"});
  expect_in_all_cuts("Silver moon rises", {"er mo"}, {"Silver mo", "er mo"}, true);
}

TEST(StopMatcher, InsideOneToken) { expect_in_all_cuts("abXYZ", {"XY"}, {"ab", "XY"}); }

TEST(StopMatcher, SharedPrefixes) {
  expect_in_all_cuts("one END!", {"END?", "END!"}, {"one ", "END!"});
  expect_in_all_cuts("abcx", {"abcd", "bc"}, {"a", "bc"});
  expect_in_all_cuts("a<|x|>", {"<|x|>", "|>"}, {"a", "<|x|>"});
}

TEST(StopMatcher, OverlapWithItself) {
  expect_in_all_cuts("aaab", {"aab"}, {"a", "aab"});
  expect_in_all_cuts("ababababac", {"ababac"}, {"abab", "ababac"});
}

TEST(StopMatcher, NeverCompletedIsFlushed) {
  expect_in_all_cuts("the en", {"end"}, {"the en", std::nullopt});
  expect_in_all_cuts("中文", {"文字"}, {"中文", std::nullopt});
  expect_in_all_cuts("", {"end"}, {"", std::nullopt});
}

TEST(StopMatcher, HoldsBackOnlyWhatMayStillMatch) {
  StopMatcher matcher({"\n\nUser:"}, false);
  EXPECT_EQ(matcher.append("Hello").text, "Hello");
  EXPECT_EQ(matcher.append("\n").text, "");
  EXPECT_EQ(matcher.append("\n").text, "");
  EXPECT_EQ(matcher.append("\n").text, "\n");  // the last two may still begin it
  EXPECT_EQ(matcher.append("Use").text, "");
  EXPECT_EQ(matcher.append(" it").text, "\n\nUse it");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, NothingComesAfterAMatch) {
  StopMatcher matcher({"x"}, false);
  auto output = matcher.append("axbx");
  EXPECT_EQ(output.text, "a");
  EXPECT_EQ(output.matched, "x");
  output = matcher.append("more x");
  EXPECT_EQ(output.text, "");
  EXPECT_FALSE(output.matched);
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, NoStopsAndEmptyStops) {
  expect_in_all_cuts("abc", {}, {"abc", std::nullopt});
  expect_in_all_cuts("abc", {""}, {"abc", std::nullopt});
}

Outcome by_search(const std::string& text, const std::vector<std::string>& stops, bool keep_stop) {
  size_t best_end = std::string::npos, best_start = 0;
  for (const auto& stop : stops) {
    const size_t start = text.find(stop);
    if (start == std::string::npos) continue;
    const size_t end = start + stop.size();
    if (end < best_end || (end == best_end && start < best_start)) {
      best_end = end;
      best_start = start;
    }
  }
  if (best_end == std::string::npos) return {text, std::nullopt};
  return {text.substr(0, keep_stop ? best_end : best_start),
          text.substr(best_start, best_end - best_start)};
}

RC_GTEST_PROP(StopMatcherProperty, EqualsASearchInTheWholeText, ()) {
  const auto word = [](int most) {
    return rc::gen::mapcat(rc::gen::inRange(1, most), [](int size) {
      return rc::gen::container<std::string>(static_cast<size_t>(size),
                                             rc::gen::elementOf(std::string("abc")));
    });
  };
  const auto stops = *rc::gen::container<std::vector<std::string>>(
      static_cast<size_t>(*rc::gen::inRange(1, 4)), word(6));
  const auto text = *word(60);
  const bool keep = *rc::gen::arbitrary<bool>();
  const auto step = static_cast<size_t>(*rc::gen::inRange(1, 8));
  RC_ASSERT(run(text, stops, step, keep) == by_search(text, stops, keep));
}

}  // namespace
}  // namespace winnow::text
