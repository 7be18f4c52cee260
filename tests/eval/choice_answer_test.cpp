#include "eval/choice_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace winnow::eval {
namespace {

std::string strict(std::string_view text) {
  const auto letter = answer_letter(text);
  return letter ? std::string(1, *letter) : "none";
}
std::string lenient(std::string_view text) {
  const auto letter = lenient_answer_letter(text);
  return letter ? std::string(1, *letter) : "none";
}
std::string longbench(std::string_view text) {
  const auto letter = longbench_letter(text);
  return letter ? std::string(1, *letter) : "none";
}

TEST(AnswerLetter, AsTheReferencesPattern) {
  EXPECT_EQ(strict("Answer: B"), "B");
  EXPECT_EQ(strict("so\nANSWER \n:\t C is it"), "C");
  EXPECT_EQ(strict("Answer: A\nAnswer: B"), "A");  // the first
  EXPECT_EQ(strict("answer: b"), "b");             // as written: then compares unequal
  EXPECT_EQ(strict("Answer: Because"), "B");
  EXPECT_EQ(strict("Answer: E or Answer:D"), "D");
  EXPECT_EQ(strict("Answer:\xC2\xA0\xE2\x80\x83"
                   "A"),
            "A");                              // \s of Python
  EXPECT_EQ(strict("An\xC5\xBFwer: A"), "A");  // the long s is an s to (?i)
  EXPECT_EQ(strict("**Answer:** B"), "none");
  EXPECT_EQ(strict("The answer is B"), "none");
  EXPECT_EQ(strict("Answer: (B)"), "none");
  EXPECT_EQ(strict("AnswerAnswer: A"), "A");
  EXPECT_EQ(strict("Answer:"), "none");
  EXPECT_EQ(strict("Answer"), "none");
  EXPECT_EQ(strict(""), "none");
  EXPECT_EQ(strict("\xFF"
                   "Answer: A\xFF"),
            "A");
}

TEST(AnswerLetter, Lenient) {
  EXPECT_EQ(lenient("Answer: B"), "B");
  EXPECT_EQ(lenient("**Answer:** B"), "B");
  EXPECT_EQ(lenient("**Answer: (b)**"), "B");
  EXPECT_EQ(lenient("Answer: $\\boxed{\\text{D}}$"), "D");
  EXPECT_EQ(lenient("The correct answer is C."), "C");
  EXPECT_EQ(lenient("The answer is: (C) because"), "C");
  EXPECT_EQ(lenient("Answer: A? No.\nAnswer: D"), "D");  // the last
  EXPECT_EQ(lenient("The answer is a mixture"), "none");
  EXPECT_EQ(lenient("The answer is a"), "A");
  EXPECT_EQ(lenient("The answer is (a) since"), "A");
  EXPECT_EQ(lenient("Answer: Because"), "none");
  EXPECT_EQ(lenient("thus \\boxed{A}"), "A");
  EXPECT_EQ(lenient("**B**."), "B");
  EXPECT_EQ(lenient("Add"), "none");
  EXPECT_EQ(lenient("<think>Answer: A"), "none");
  EXPECT_EQ(lenient("Answer: A</think>Answer: B"), "B");
}

TEST(AnswerLetter, LongBench) {
  EXPECT_EQ(longbench("The correct answer is (B)."), "B");
  EXPECT_EQ(longbench("**The correct answer is\n(C)**"), "C");
  EXPECT_EQ(longbench("The correct answer is D"), "D");
  EXPECT_EQ(longbench("The correct answer is Deep"), "none");
  EXPECT_EQ(longbench("Answer: a"), "A");
  EXPECT_EQ(longbench("my answer is (a)"), "A");
  EXPECT_EQ(longbench("The correct answer is A. No: the correct answer is (B)"), "B");
  EXPECT_EQ(longbench("nothing"), "none");
}

}  // namespace
}  // namespace winnow::eval
