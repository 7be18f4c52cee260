// First byte: whose reader gets the rest, a model's answer. Answers are read without a crash or a
// hang, what is found can be found in what was found, and a formula equals itself.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "eval/choice_answer.h"
#include "eval/gsm8k_script_number.h"
#include "eval/humaneval_task.h"
#include "eval/latex_notation.h"
#include "eval/math_answer.h"
#include "eval/number_answer.h"
#include "text/markup.h"

using namespace winnow::eval;

namespace {

void read_numbers(std::string_view text) {
  if (const auto number = answer_number(text)) {
    const auto again = last_number(number->text);
    WINNOW_CHECK(again && again->text == number->text, "{}", number->text);
  }
  if (const auto digits = gsm8k_script_number(text)) {
    WINNOW_CHECK(gsm8k_script_number(*digits) == digits, "{}", *digits);
  }
}

void read_letters(std::string_view text) {
  (void)lenient_answer_letter(text);
  (void)longbench_letter(text);
  if (const auto letter = answer_letter(text)) {
    WINNOW_CHECK(answer_letter(std::string("Answer: ") + *letter) == letter, "{}", *letter);
  }
}

void read_formulas(std::string_view text) {
  (void)stated_math_answer(text);
  const size_t half = text.size() / 2;
  const bool forth = same_math(text.substr(0, half), text.substr(half));
  const bool back = same_math(text.substr(half), text.substr(0, half));
  WINNOW_CHECK(forth == back, "{} | {}", text.substr(0, half), text.substr(half));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_numbers(text);
      break;
    case 1:
      read_letters(text);
      break;
    case 2:
      read_formulas(text);
      break;
    default:
      (void)first_code_block(text);
      WINNOW_CHECK(winnow::is_valid_utf8(winnow::text::escape_markup(text)), "not UTF-8");
  }
  return 0;
}
