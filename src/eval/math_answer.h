// Whether two answers of a mathematics exam are the same, without asking another model.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace winnow::eval {

// What the model gives as its answer: behind the last "Answer:" on its line, else in the last
// \boxed{}. Nothing where there is neither.
std::optional<std::string> stated_math_answer(std::string_view text);

// Numbers and formulas by value at sample points, tuples, intervals and matrices part by part,
// sets and lists in any order, equations up to a factor; everything else as text in one notation.
bool same_math(std::string_view answer, std::string_view label);

}  // namespace winnow::eval
