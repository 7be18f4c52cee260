#include "eval/number_answer.h"

#include <gtest/gtest.h>

#include "eval/gsm8k_script_number.h"

namespace winnow::eval {
namespace {

std::string answer(std::string_view text) {
  const auto number = answer_number(text);
  return number ? number->text : "none";
}
std::string last(std::string_view text) {
  const auto number = last_number(text);
  return number ? number->text : "none";
}
std::string script(std::string_view text) { return gsm8k_script_number(text).value_or("invalid"); }

// Fault B122: GSM8K scored too low by extractors that cut at commas, take the number of a run-on
// or miss boxed answers.
TEST(NumberAnswer, ExtractionTable) {
  EXPECT_EQ(answer("She has 16-3-4=9 eggs.\n#### 18\n\nQuestion: Tom has 3\nAnswer:\n#### 7"),
            "18");
  EXPECT_EQ(answer("The house costs $80,000."), "80000");
  EXPECT_EQ(answer("70,000.00"), "70000");
  EXPECT_EQ(answer("-3"), "-3");
  EXPECT_EQ(answer("1/2"), "1/2");
  EXPECT_EQ(answer("5%"), "5");
  EXPECT_EQ(answer("so $\\boxed{1,234}$ it is, in 3 steps"), "1234");
  EXPECT_EQ(answer("The answer is 42."), "42");
  EXPECT_EQ(answer("3.0"), "3");
  EXPECT_EQ(answer("\xD9\xA3"), "3");  // an Arabic three
  EXPECT_EQ(answer("I do not know."), "none");
  EXPECT_EQ(answer(""), "none");
  // Policy: what stands only in the thinking is no answer.
  EXPECT_EQ(answer("<think>It is 42"), "none");
  EXPECT_EQ(answer("<think>It is 42</think>"), "none");
  EXPECT_EQ(answer("<think>Perhaps 41</think>It is 42"), "42");
  EXPECT_EQ(answer("Perhaps 41</think>It is 42"), "42");
}

TEST(NumberAnswer, WhereTheAnswerStands) {
  EXPECT_EQ(answer("#### 1,450,000"), "1450000");
  EXPECT_EQ(answer("#### -10"), "-10");
  EXPECT_EQ(answer("#### $18 (all 3 days)"), "18");
  EXPECT_EQ(answer("####\nno number there, 7 here"), "7");
  EXPECT_EQ(answer("**Answer:** 12\nI used 3 steps"), "12");
  EXPECT_EQ(answer("The final answer is: **3 + 4 = 7**. Checked in 2 ways"), "7");
  EXPECT_EQ(answer("First answer: 3\nAnswer: 4"), "4");
  EXPECT_EQ(answer("\\boxed{\\frac{3}{4}} of 12"), "3/4");
  EXPECT_EQ(answer("\\boxed{x}"), "none");
  EXPECT_EQ(answer("\\boxed{7"), "7");
  EXPECT_EQ(answer("Question: 3 and 4"), "none");
}

TEST(NumberAnswer, Numbers) {
  EXPECT_EQ(last("5-3"), "3");
  EXPECT_EQ(last("= -3"), "-3");
  EXPECT_EQ(last("a loss of -$3.50"), "-3.5");
  EXPECT_EQ(last("$-3"), "-3");
  EXPECT_EQ(last("\xE2\x88\x92"
                 "12"),
            "-12");  // U+2212
  EXPECT_EQ(last("12,34"), "34");
  EXPECT_EQ(last("1,2345"), "2345");
  EXPECT_EQ(last("1234,567"), "567");
  EXPECT_EQ(last("1{,}234 or 1\\,234"), "1234");
  EXPECT_EQ(last(".5"), "0.5");
  EXPECT_EQ(last("007"), "7");
  EXPECT_EQ(last("-0.0"), "0");
  EXPECT_EQ(last("on 1/2/2020"), "2020");
  EXPECT_EQ(last("3/0"), "0");
  EXPECT_EQ(last("version 1.5.2"), "2");
  EXPECT_EQ(last("\\frac{\\frac{1}{2}"), "1/2");
  EXPECT_EQ(last("\xEF\xBC\x91\xEF\xBC\x92"), "12");  // full width
}

TEST(NumberAnswer, EqualByValue) {
  EXPECT_EQ(*last_number("3.0"), *last_number("3"));
  EXPECT_EQ(*last_number("1/2"), *last_number("0.5"));
  EXPECT_EQ(*last_number("2/4"), *last_number("1/2"));
  EXPECT_FALSE(*last_number("-3") == *last_number("3"));
  EXPECT_FALSE(*last_number("123456789012345678901") == *last_number("123456789012345678902"));
}

TEST(Gsm8kScriptNumber, KeepsTheScriptsFaults) {
  EXPECT_EQ(script("#### 18"), "18");
  EXPECT_EQ(script("18.00"), "0");
  EXPECT_EQ(script("-3"), "3");
  EXPECT_EQ(script("1,2 and 80,000"), "80000");
  EXPECT_EQ(script("007"), "invalid");
  EXPECT_EQ(script("00"), "0");
  EXPECT_EQ(script("none"), "invalid");
  EXPECT_EQ(script("The answer is 42. I used 3 steps"), "3");
  EXPECT_EQ(script("\xD9\xA3"), "invalid");  // found as a digit, not readable as a literal
  EXPECT_EQ(script("5 \xD9\xA3"), "invalid");
  EXPECT_EQ(script("5\xFF"
                   "6,7"),
            "67");
  EXPECT_EQ(script(std::string(4301, '1')), "invalid");
}

}  // namespace
}  // namespace winnow::eval
