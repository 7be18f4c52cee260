// The value of a LaTeX formula, with values put in for its letters: two formulas that agree at
// several points are equal for all that an exam asks.
#pragma once

#include <complex>
#include <optional>
#include <string_view>

namespace winnow::eval {

inline constexpr int kNumSamplePoints = 3;

// formula: plain_latex()'s. point: 0 to kNumSamplePoints - 1, which values the letters have; i, e
// and \pi are constants. Nothing where the formula cannot be read or has no finite value.
std::optional<std::complex<double>> latex_value(std::string_view formula, int point);

}  // namespace winnow::eval
