// One way of writing for what LaTeX writes in many.
#pragma once

#include <string>
#include <string_view>

namespace winnow::eval {

// "\left(\dfrac{1}{2},\ 3\right)$ cm." -> "(\frac{1}{2},3)": no delimiters of mathematics, sizes,
// spaces, units, degrees, percent and currency signs; one name for each command; "and" and "or"
// between answers as commas; thousands without commas.
std::string plain_latex(std::string_view latex);

}  // namespace winnow::eval
