#include "eval/math_answer.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "eval/boxed.h"
#include "eval/latex_notation.h"
#include "eval/latex_value.h"
#include "eval/text_folding.h"
#include "eval/thinking.h"

namespace winnow::eval {
namespace {

using Parts = std::vector<std::string>;

// Splits where sign stands outside of all brackets.
Parts split_outside(std::string_view text, std::string_view sign) {
  Parts parts(1);
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    if (depth == 0 && text.substr(i).starts_with(sign)) {
      parts.emplace_back();
      i += sign.size();
      continue;
    }
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    parts.back().push_back(c);
    ++i;
  }
  return parts;
}

bool same_in_order(const Parts& a, const Parts& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const std::string& x, const std::string& y) { return same_math(x, y); });
}

bool same_in_any_order(const Parts& a, Parts b) {
  constexpr size_t kMost = 64;
  if (a.size() != b.size() || a.size() > kMost) return false;
  for (const std::string& item : a) {
    const auto found = std::find_if(
        b.begin(), b.end(), [&](const std::string& other) { return same_math(item, other); });
    if (found == b.end()) return false;
    b.erase(found);
  }
  return true;
}

// "(1,2]" has brackets "(]", "1,2" has none, "\{1,2\}" has "{}".
struct List {
  std::string brackets;
  Parts parts;
};

List read_list(std::string_view text) {
  List list;
  std::string_view inside = text;
  if (text.size() > 4 && text.starts_with("\\{") && text.ends_with("\\}")) {
    list.brackets = "{}";
    inside = text.substr(2, text.size() - 4);
  } else if (text.size() > 2 && (text[0] == '(' || text[0] == '[') &&
             (text.back() == ')' || text.back() == ']')) {
    list.brackets = {text[0], text.back()};
    inside = text.substr(1, text.size() - 2);
  }
  list.parts = split_outside(inside, ",");
  // "(1)(2),(3)" only looks enclosed.
  if (!list.brackets.empty() && (list.parts.size() == 1 || split_outside(text, ",").size() > 1)) {
    list = {"", split_outside(text, ",")};
  }
  return list;
}

// The two values of a plus-minus, else the text alone.
Parts with_both_signs(const std::string& text) {
  const size_t at = text.find("\\pm");
  if (at == std::string::npos || text.find("\\pm", at + 3) != std::string::npos) return {text};
  std::string plus = text;
  std::string minus = text;
  plus.replace(at, 3, "+");
  minus.replace(at, 3, "-");
  return {plus, minus};
}

Parts expanded(const Parts& parts) {
  Parts all;
  for (const std::string& part : parts) {
    for (std::string& value : with_both_signs(part)) all.push_back(std::move(value));
  }
  return all;
}

std::optional<Parts> matrix_parts(std::string_view text) {
  if (!text.starts_with("\\begin{") || text.find("matrix}") == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t begin = text.find('}') + 1;
  const size_t end = text.rfind("\\end{");
  if (end == std::string_view::npos || end < begin) return std::nullopt;
  Parts cells;
  for (const std::string& row : split_outside(text.substr(begin, end - begin), "\\\\")) {
    if (row.empty()) continue;
    for (std::string& cell : split_outside(row, "&")) cells.push_back(std::move(cell));
    cells.emplace_back("row");
  }
  return cells;
}

bool close(std::complex<double> a, std::complex<double> b) {
  return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
}

bool same_value(std::string_view a, std::string_view b) {
  for (int point = 0; point < kNumSamplePoints; ++point) {
    const auto x = latex_value(a, point);
    const auto y = latex_value(b, point);
    if (!x || !y || !close(*x, *y)) return false;
  }
  return true;
}

// Both sides' difference in the same proportion at every point.
bool same_equation(const Parts& a, const Parts& b) {
  std::optional<std::complex<double>> ratio;
  for (int point = 0; point < kNumSamplePoints; ++point) {
    const auto a0 = latex_value(a[0], point);
    const auto a1 = latex_value(a[1], point);
    const auto b0 = latex_value(b[0], point);
    const auto b1 = latex_value(b[1], point);
    if (!a0 || !a1 || !b0 || !b1 || *a0 == *a1 || *b0 == *b1) return false;
    const std::complex<double> here = (*a0 - *a1) / (*b0 - *b1);
    if (ratio && !close(*ratio, here)) return false;
    ratio = here;
  }
  return true;
}

// "x = 5" answers "what is x" with 5; so does "f(x) = ...".
std::string right_side(const std::string& text) {
  constexpr size_t kLongestName = 6;
  const Parts sides = split_outside(text, "=");
  return sides.size() == 2 && sides[0].size() <= kLongestName ? sides[1] : text;
}

bool same_plain(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  if (lower_ascii(a) == lower_ascii(b)) return true;
  const auto matrix_a = matrix_parts(a);
  const auto matrix_b = matrix_parts(b);
  if (matrix_a || matrix_b) return matrix_a && matrix_b && same_in_order(*matrix_a, *matrix_b);
  const Parts union_a = split_outside(a, "\\cup");
  const Parts union_b = split_outside(b, "\\cup");
  if (union_a.size() + union_b.size() > 2) return same_in_any_order(union_a, union_b);
  const List list_a = read_list(a);
  const List list_b = read_list(b);
  const Parts all_a = expanded(list_a.parts);
  const Parts all_b = expanded(list_b.parts);
  if (all_a.size() > 1 || all_b.size() > 1) {
    const bool set_a = list_a.brackets.empty() || list_a.brackets == "{}";
    const bool set_b = list_b.brackets.empty() || list_b.brackets == "{}";
    if (set_a && set_b) return same_in_any_order(all_a, all_b);
    return list_a.brackets == list_b.brackets && same_in_order(all_a, all_b);
  }
  const Parts sides_a = split_outside(a, "=");
  const Parts sides_b = split_outside(b, "=");
  if (sides_a.size() == 2 && sides_b.size() == 2 && same_equation(sides_a, sides_b)) return true;
  const std::string value_a = right_side(a);
  const std::string value_b = right_side(b);
  if (value_a != a || value_b != b) return same_plain(value_a, value_b);
  return same_value(a, b);
}

}  // namespace

std::optional<std::string> stated_math_answer(std::string_view answer) {
  const std::string_view text = without_thinking(answer);
  const std::string lower = lower_ascii(text);
  for (size_t at = lower.rfind("answer"); at != std::string::npos && at < lower.size();
       at = at == 0 ? std::string::npos : lower.rfind("answer", at - 1)) {
    const size_t colon = lower.find_first_not_of(" *_", at + 6);
    if (colon == std::string::npos || lower[colon] != ':') continue;
    std::string_view rest = text.substr(colon + 1);
    rest = trimmed(rest.substr(0, rest.find('\n')));
    while (rest.starts_with('*')) rest = trimmed(rest.substr(1));
    if (rest.empty()) continue;
    return std::string(last_boxed(rest).value_or(rest));
  }
  if (const auto boxed = last_boxed(text)) return std::string(*boxed);
  return std::nullopt;
}

bool same_math(std::string_view answer, std::string_view label) {
  constexpr size_t kLongest = 2000;  // no exam's answer
  if (answer.size() > kLongest || label.size() > kLongest) return false;
  return same_plain(plain_latex(with_ascii_digits(answer)), plain_latex(with_ascii_digits(label)));
}

}  // namespace winnow::eval
