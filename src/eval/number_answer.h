// Numbers in what models write: "$80,000.", "-3", "1/2", "\boxed{1,234}", "18.00".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace winnow::eval {

struct Number {
  std::string text;  // no separators, signs of zero, leading or trailing zeros: "80000", "-0.5"
  double value = 0;
  bool fraction = false;  // written as a/b

  // 3 = 3.0; fractions by value, plain numbers digit by digit.
  bool operator==(const Number& other) const;
};

// The last number of a text. Commas between groups of three digits belong to it; a minus counts
// where no number or letter stands in front of it ("5-3" ends in 3); "%" and currencies are left
// out. Decimal digits of any script count.
std::optional<Number> last_number(std::string_view text);

// The answer's number by this order: what follows the first "####", the last \boxed{}, what follows
// the last "answer is" or "answer:", else the last number. A run-on ("Question:" at the start of
// a line) and everything up to "</think>" are cut off first; a text that only thinks has none.
std::optional<Number> answer_number(std::string_view text);

}  // namespace winnow::eval
