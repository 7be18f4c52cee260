#include "text/detokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing/tiny_tokenizer.h"

namespace winnow::text {
namespace {

using Ids = std::vector<int32_t>;

const Tokenizer& bytes() {
  static const auto tokenizer = testing::make_byte_tokenizer();
  return *tokenizer;
}

Ids ids_of(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// The deltas of ids delivered `step` at a time, the last one from finish().
std::vector<std::string> stream(const Ids& ids, size_t step, bool skip_special = true) {
  Detokenizer detokenizer(bytes(), skip_special);
  std::vector<std::string> deltas;
  for (size_t at = 0; at < ids.size(); at += step) {
    deltas.push_back(
        detokenizer.append(std::span(ids).subspan(at, std::min(step, ids.size() - at))));
  }
  deltas.push_back(detokenizer.finish());
  return deltas;
}

std::string joined(const std::vector<std::string>& deltas) {
  std::string text;
  for (const auto& delta : deltas) text += delta;
  return text;
}

// B85, B86: characters split into single-byte tokens, 1 to 8 ids a step.
TEST(Detokenizer, NeverHalfACharacterAndNeverStuck) {
  for (const char* text :
       {"🙂🙂", "👩‍👩‍👧", "한", "中", "aé中🙂z", "naïve 中文 🙂 end"}) {
    for (size_t step = 1; step <= 8; ++step) {
      const auto deltas = stream(ids_of(text), step);
      EXPECT_EQ(joined(deltas), text) << step;
      for (const auto& delta : deltas) EXPECT_EQ(delta.find("\xEF\xBF\xBD"), std::string::npos);
    }
  }
}

TEST(Detokenizer, EveryCharacterComesInTheStepThatCompletesIt) {
  const std::vector<std::string> expected{"", "", "", "🙂", "a", "", "", "中", ""};
  EXPECT_EQ(stream(ids_of("🙂a中"), 1), expected);
}

// serving.md 4 (b), B85: a byte that belongs to no character comes out when that is known.
TEST(Detokenizer, BrokenBytesDoNotHoldTheTextBack) {
  EXPECT_EQ(stream(ids_of("\xFFok"), 1), (std::vector<std::string>{"\uFFFD", "o", "k", ""}));
  EXPECT_EQ(stream(ids_of("\xF0\x9F"
                          "a"),
                   1),
            (std::vector<std::string>{"", "", "\uFFFDa", ""}));
  EXPECT_EQ(stream(ids_of("\x80\x80"), 1), (std::vector<std::string>{"\uFFFD", "\uFFFD", ""}));
  const Ids many(1000, 0xF0);
  const auto deltas = stream(many, 1);
  for (size_t i = 1; i < many.size(); ++i) EXPECT_EQ(deltas[i], "\uFFFD");
}

TEST(Detokenizer, TextThatHoldsReplacementCharactersFlowsOn) {
  const auto deltas = stream(ids_of("a\uFFFDb\uFFFD\uFFFDc"), 3);
  EXPECT_EQ(joined(deltas), "a\uFFFDb\uFFFD\uFFFDc");
  EXPECT_EQ(deltas.back(), "");
}

// serving.md 4 (a): tokens without text, here hidden ones and unknown ids, in any number.
TEST(Detokenizer, TokensWithoutTextDoNotDisturb) {
  const int32_t user = *bytes().token_id("<|user|>");
  Ids ids = ids_of("\xE4\xB8");
  ids.insert(ids.end(), 10'000, user);
  ids.insert(ids.end(), {999, -1, INT32_MAX, 0xAD, 'x'});
  EXPECT_EQ(joined(stream(ids, 7)), "中x");
  EXPECT_EQ(joined(stream({user, 'x'}, 1, false)), "<|user|>x");
}

// serving.md 4 (d): the prompt ended within a character; nothing of it is told again.
TEST(Detokenizer, LeadingContinuationBytes) {
  EXPECT_EQ(stream(ids_of("\xAD"
                          "abc"),
                   1),
            (std::vector<std::string>{"\uFFFD", "a", "b", "c", ""}));
}

// serving.md 4 (e)
TEST(Detokenizer, FinishFlushesOnce) {
  Detokenizer detokenizer(bytes(), true);
  EXPECT_EQ(detokenizer.append(ids_of("a\xF0\x9F\x99")), "a");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

// serving.md 4 (c), B86: stream and whole decode are one text, whatever the bytes and steps.
RC_GTEST_PROP(DetokenizerProperty, EqualsDecode, ()) {
  const auto byte = rc::gen::elementOf(Ids{'a',
                                           ' ',
                                           0xC3,
                                           0xA9,
                                           0xE4,
                                           0xB8,
                                           0xAD,
                                           0xF0,
                                           0x9F,
                                           0x99,
                                           0x82,
                                           0xED,
                                           0xA0,
                                           0xFF,
                                           0x80,
                                           0xC0,
                                           0xF4,
                                           0x90,
                                           testing::kTinyFirstAdded,
                                           testing::kTinyFirstAdded + 7});
  const auto ids = *rc::gen::container<Ids>(byte);
  const auto step = static_cast<size_t>(*rc::gen::inRange(1, 9));
  const bool skip = *rc::gen::arbitrary<bool>();
  RC_ASSERT(joined(stream(ids, step, skip)) == bytes().decode(ids, skip));
}

}  // namespace
}  // namespace winnow::text
