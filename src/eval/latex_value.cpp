#include "eval/latex_value.h"

#include <cmath>
#include <numbers>
#include <string>

namespace winnow::eval {
namespace {

using Complex = std::complex<double>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Unreadable {};

// Recursive descent, evaluating as it reads.
class Evaluator {
 public:
  Evaluator(std::string_view text, int point) : text_(text), point_(point) {}

  Complex whole() {
    const Complex value = sum();
    if (at_ != text_.size()) throw Unreadable();
    return value;
  }

 private:
  static constexpr int kMaxDepth = 60;

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view sign) {
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) throw Unreadable();
  }

  Complex sum() {
    if (++depth_ > kMaxDepth) throw Unreadable();
    Complex value = signed_product();
    while (peek() == '+' || peek() == '-') {
      const bool minus = text_[at_++] == '-';
      const Complex next = signed_product();
      value = minus ? value - next : value + next;
    }
    --depth_;
    return value;
  }

  Complex signed_product() {
    bool minus = false;
    while (peek() == '-' || peek() == '+') minus ^= text_[at_++] == '-';
    const Complex value = product();
    return minus ? -value : value;
  }

  Complex product() {
    Complex value = power();
    while (true) {
      if (take("*")) {
        value *= signed_power();
      } else if (take("/")) {
        value /= signed_power();
      } else if (begins_factor()) {
        value *= power();
      } else {
        return value;
      }
    }
  }

  Complex signed_power() { return take("-") ? -power() : power(); }

  bool begins_factor() const {
    const char c = peek();
    if (is_digit(c) || is_letter(c) || c == '(' || c == '{' || c == '[' || c == '.' || c == ' ') {
      return true;
    }
    if (c != '\\') return false;
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view relation : {"\\le", "\\ge", "\\ne", "\\cup", "\\cap", "\\pm",
                                            "\\in", "\\to", "\\}", "\\\\", "\\infty"}) {
      if (rest.starts_with(relation) &&
          (rest.size() == relation.size() || !is_letter(rest[relation.size()]))) {
        return false;
      }
    }
    return true;
  }

  Complex power() {
    while (take(" ")) {
    }
    Complex value = primary();
    while (take("!")) value = factorial(value);
    if (take("^")) value = std::pow(value, argument());
    return value;
  }

  static Complex factorial(Complex value) {
    constexpr double kLargest = 170;
    const double n = value.real();
    if (value.imag() != 0 || n < 0 || n > kLargest || n != std::floor(n)) throw Unreadable();
    return std::tgamma(n + 1);
  }

  // {anything}, or the one sign that LaTeX takes: \frac12, x^2, x^\pi. A minus goes along.
  Complex argument() {
    while (take(" ")) {
    }
    if (take("-")) return -argument();
    if (peek() == '{') return primary();
    if (is_digit(peek())) return Complex(text_[at_++] - '0');
    return primary();
  }

  Complex primary() {
    if (++depth_ > kMaxDepth) throw Unreadable();
    const Complex value = primary_inside();
    --depth_;
    return value;
  }

  Complex primary_inside() {
    const char c = peek();
    if (is_digit(c) || c == '.') return number();
    if (take("(")) return closed(")");
    if (take("[")) return closed("]");
    if (take("{")) return closed("}");
    if (take("|")) return std::abs(closed("|"));
    if (is_letter(c)) {
      ++at_;
      return letter(std::string(1, c));
    }
    if (c == '\\') return command();
    throw Unreadable();
  }

  Complex closed(std::string_view sign) {
    const Complex value = sum();
    expect(sign);
    return value;
  }

  Complex number() {
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    const bool whole = peek() != '.';
    if (take(".")) {
      while (is_digit(peek())) ++at_;
    }
    if (at_ == begin + 1 && !whole) throw Unreadable();
    const double value =
        std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr);
    return whole ? value + mixed_fraction() : value;
  }

  // 3\frac{1}{2} is three and a half.
  double mixed_fraction() {
    const size_t begin = at_;
    if (!take("\\frac")) return 0;
    const std::optional<double> above = digits_argument();
    const std::optional<double> below = above ? digits_argument() : std::nullopt;
    if (below && *below != 0) return *above / *below;
    at_ = begin;
    return 0;
  }

  std::optional<double> digits_argument() {
    if (is_digit(peek())) return text_[at_++] - '0';
    if (!take("{")) return std::nullopt;
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    const std::string digits(text_.substr(begin, at_ - begin));
    if (digits.empty() || !take("}")) return std::nullopt;
    return std::strtod(digits.c_str(), nullptr);
  }

  // A letter's value, or that of a name with an index: x, x_1, x_{12}.
  Complex letter(std::string name) {
    if (take("_")) {
      if (take("{")) {
        while (at_ < text_.size() && peek() != '}') name.push_back(text_[at_++]);
        expect("}");
      } else if (at_ < text_.size()) {
        name.push_back(text_[at_++]);
      }
    } else if (name == "i") {
      return {0, 1};
    } else if (name == "e") {
      return std::numbers::e;
    }
    uint32_t mixed = 2166136261U + static_cast<uint32_t>(point_) * 97;
    for (const char c : name) mixed = (mixed ^ static_cast<unsigned char>(c)) * 16777619U;
    return 0.75 + static_cast<double>(mixed >> 8) / (1 << 24) * 1.5;
  }

  Complex command() {
    ++at_;
    const size_t begin = at_;
    while (is_letter(peek())) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name == "frac") {
      const Complex above = argument();
      return above / argument();
    }
    if (name == "sqrt") return root();
    if (name == "pi") return std::numbers::pi;
    if (name == "binom") {
      const Complex n = argument();
      const Complex k = argument();
      return factorial(n) / (factorial(k) * factorial(n - k));
    }
    if (name == "log" || name == "ln" || name == "lg") return logarithm(name);
    if (name.empty()) throw Unreadable();
    if (const std::optional<Complex> value = function(name)) return *value;
    for (const std::string_view greek :
         {"alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "phi", "omega", "sigma"}) {
      if (name == greek) return letter("\\" + name);
    }
    throw Unreadable();
  }

  Complex root() {
    Complex degree = 2;
    if (take("[")) degree = closed("]");
    const Complex value = argument();
    if (degree == Complex(2)) return std::sqrt(value);
    if (value.imag() == 0 && degree == Complex(3)) return std::cbrt(value.real());
    return std::pow(value, 1.0 / degree);
  }

  Complex logarithm(const std::string& name) {
    Complex base = name == "ln" ? std::numbers::e : 10;
    if (take("_")) base = argument();
    return std::log(power()) / std::log(base);
  }

  std::optional<Complex> function(const std::string& name) {
    using Function = Complex (*)(const Complex&);
    struct Row {
      std::string_view name;
      Function function;
    };
    static constexpr Row kFunctions[] = {
        {"sin", [](const Complex& x) { return std::sin(x); }},
        {"cos", [](const Complex& x) { return std::cos(x); }},
        {"tan", [](const Complex& x) { return std::tan(x); }},
        {"cot", [](const Complex& x) { return 1.0 / std::tan(x); }},
        {"sec", [](const Complex& x) { return 1.0 / std::cos(x); }},
        {"csc", [](const Complex& x) { return 1.0 / std::sin(x); }},
        {"exp", [](const Complex& x) { return std::exp(x); }},
        {"arcsin", [](const Complex& x) { return std::asin(x); }},
        {"arccos", [](const Complex& x) { return std::acos(x); }},
        {"arctan", [](const Complex& x) { return std::atan(x); }},
    };
    for (const Row& row : kFunctions) {
      if (name != row.name) continue;
      Complex exponent = 1;
      if (take("^")) exponent = argument();  // \sin^2 x
      return std::pow(row.function(power()), exponent);
    }
    return std::nullopt;
  }

  std::string_view text_;
  const int point_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::complex<double>> latex_value(std::string_view formula, int point) {
  constexpr size_t kLongest = 2000;
  if (formula.empty() || formula.size() > kLongest) return std::nullopt;
  try {
    const std::complex<double> value = Evaluator(formula, point).whole();
    if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) return std::nullopt;
    return value;
  } catch (const Unreadable&) {
    return std::nullopt;
  }
}

}  // namespace winnow::eval
