#include "eval/math_answer.h"

#include <gtest/gtest.h>

#include "eval/latex_notation.h"
#include "eval/latex_value.h"

namespace winnow::eval {
namespace {

std::string stated(std::string_view text) { return stated_math_answer(text).value_or("none"); }

TEST(MathAnswer, WhereItIsStated) {
  EXPECT_EQ(stated("so\nAnswer: $\\frac{1}{2}$"), "$\\frac{1}{2}$");
  EXPECT_EQ(stated("Answer: 1\nWait.\n**Answer:** 2\nDone"), "2");
  EXPECT_EQ(stated("Answer: \\boxed{5} cm"), "5");
  EXPECT_EQ(stated("thus \\boxed{\\frac{1}{2}}, and not \\boxed{3}"), "3");
  EXPECT_EQ(stated("Answer:\n\\boxed{7}"), "7");
  EXPECT_EQ(stated("<think>Answer: 3"), "none");
  EXPECT_EQ(stated("the answer is unclear"), "none");
  EXPECT_EQ(stated("answer answer: 4"), "4");
}

TEST(MathAnswer, Same) {
  const std::pair<const char*, const char*> kSame[] = {
      {"0.5", "\\frac12"},
      {"\\dfrac{1}{2}", "\\frac{2}{4}"},
      {"1/2", "0.50"},
      {"$12,345$", "12345"},
      {"-\\frac{3}{4}", "\\frac{-3}{4}"},
      {"3\\frac{1}{2}", "3.5"},
      {"2\\sqrt{3}", "\\sqrt{12}"},
      {"\\sqrt[3]{8}", "2"},
      {"\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"},
      {"x^2+2x+1", "(x+1)^2"},
      {"(x - 1)(x + 1)", "x^{2} - 1"},
      {"2\\pi r", "2 \\cdot \\pi \\cdot r"},
      {"\\sin^2 x + \\cos^2 x", "1"},
      {"e^{i\\pi}", "-1"},
      {"10\\%", "10"},
      {"90^\\circ", "90"},
      {"\\$18.00", "18"},
      {"5 \\text{ cm}", "5"},
      {"12 square inches", "12"},
      {"x = 5", "5"},
      {"y = 2x + 3", "2x - y + 3 = 0"},
      {"(1, 2)", "\\left( 1, 2 \\right)"},
      {"(-\\infty, 3]", "(-\\infty,3]"},
      {"1, 2, 3", "3,1,2"},
      {"\\{1,2\\}", "2 \\text{ and } 1"},
      {"1 \\pm \\sqrt{2}", "1+\\sqrt2, 1-\\sqrt2"},
      {"[0,1) \\cup (2,3]", "(2, 3] \\cup [0, 1)"},
      {"\\begin{pmatrix} 1 \\\\ 1/2 \\end{pmatrix}", "\\begin{pmatrix}1\\\\0.5\\end{pmatrix}"},
      {"\\text{Evelyn}", "evelyn"},
      {"\\text{(C)}", "(C)"},
      {"\\log_2 8", "3"},
      {"\\binom{5}{2}", "10"},
      {"5!", "120"},
      {"52_8", "52_{8}"},
      {"\\boxed{7}.", "7"},
      {"|x-3|", "|3-x|"},
      {"\xC2\xBD"
       "0",
       "\xC2\xBD"
       "0"},
  };
  for (const auto& [a, b] : kSame) {
    EXPECT_TRUE(same_math(a, b)) << a << " | " << b << " | " << plain_latex(a) << " | "
                                 << plain_latex(b);
    EXPECT_TRUE(same_math(b, a)) << b << " | " << a;
  }
}

TEST(MathAnswer, Different) {
  const std::pair<const char*, const char*> kDifferent[] = {
      {"0.5", "0.333"},
      {"\\frac13", "0.3333"},
      {"x", "y"},
      {"(1,2)", "(2,1)"},
      {"(1,2)", "[1,2]"},
      {"1,2", "1,2,3"},
      {"-3", "3"},
      {"x+1", "x-1"},
      {"100, 200", "100200"},
      {"\\pi x", "\\pi"},
      {"", "3"},
      {"3", ""},
      {"y = 2x", "y = 3x"},
      {"\\text{Tom}", "Ann"},
      {"3\\frac{1}{2}", "1.5"},
      {"1/0", "1/0 + 1"},
      {"\\frac{1}{", "1"},
      {"52_8", "52_9"},
      {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}2\\\\1\\end{pmatrix}"},
  };
  for (const auto& [a, b] : kDifferent) {
    EXPECT_FALSE(same_math(a, b)) << a << " | " << b;
    EXPECT_FALSE(same_math(b, a)) << b << " | " << a;
  }
}

TEST(MathAnswer, HostileTextsEnd) {
  std::string deep;
  for (int i = 0; i < 450; ++i) deep += "((1,";
  EXPECT_FALSE(same_math(deep, "1"));
  std::string signs;
  for (int i = 0; i < 400; ++i) signs += "\\pm1";
  EXPECT_FALSE(same_math(signs, "1"));
  EXPECT_FALSE(latex_value(std::string(1900, '('), 0));
  EXPECT_FALSE(latex_value(std::string(1900, '-'), 0));
  EXPECT_FALSE(same_math(std::string(3000, '1'), std::string(3000, '1')));
}

}  // namespace
}  // namespace winnow::eval
