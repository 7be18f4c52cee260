#include "eval/number_answer.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "eval/boxed.h"
#include "eval/text_folding.h"
#include "eval/thinking.h"

namespace winnow::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "007.50" -> "7.5", "-0" -> "0"
std::string canonical(std::string_view digits, std::string_view decimals, bool negative) {
  while (!digits.empty() && digits.front() == '0') digits.remove_prefix(1);
  while (!decimals.empty() && decimals.back() == '0') decimals.remove_suffix(1);
  std::string text(digits.empty() ? "0" : digits);
  if (!decimals.empty()) (text += '.') += decimals;
  return negative && text != "0" ? "-" + text : text;
}

// Reads the numbers of a text one by one.
class NumberScanner {
 public:
  explicit NumberScanner(std::string_view text) : text_(text) {}

  std::optional<Number> next() {
    while (at_ < text_.size() && !starts_here()) ++at_;
    if (at_ == text_.size()) return std::nullopt;
    const bool behind_slash = at_ > 0 && text_[at_ - 1] == '/';  // as in a date
    const bool negative = has_sign(at_);
    const std::string digits = take_grouped();
    const std::string_view decimals = take_decimals();
    Number number;
    number.text = canonical(digits, decimals, negative);
    number.value = std::strtod(number.text.c_str(), nullptr);
    if (decimals.empty() && !behind_slash) take_denominator(number);
    return number;
  }

 private:
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  bool starts_here() const {
    if (is_digit(text_[at_])) return true;
    const bool after_digit = at_ > 0 && is_digit(text_[at_ - 1]);
    return text_[at_] == '.' && is_digit(at(at_ + 1)) && !after_digit;
  }

  // "-3", "-$3", "$-3"; not the minus of "5-3" or "x-3".
  bool has_sign(size_t begin) const {
    if (begin > 0 && text_[begin - 1] == '$') --begin;
    if (begin == 0 || text_[begin - 1] != '-') return false;
    if (begin == 1) return true;
    const char before = text_[begin - 2];
    return !is_digit(before) && !is_letter(before) && before != ')' && before != '}' &&
           before != '-';
  }

  std::string take_plain() {
    const size_t begin = at_;
    while (is_digit(at(at_))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // "1,234,567" as one number, "80,00" as two.
  std::string take_grouped() {
    std::string digits = take_plain();
    if (digits.empty() || digits.size() > 3) return digits;
    auto group_follows = [&] {
      return at(at_) == ',' && is_digit(at(at_ + 1)) && is_digit(at(at_ + 2)) &&
             is_digit(at(at_ + 3)) && !is_digit(at(at_ + 4));
    };
    while (group_follows()) {
      digits += text_.substr(at_ + 1, 3);
      at_ += 4;
    }
    return digits;
  }

  std::string_view take_decimals() {
    if (at(at_) != '.' || !is_digit(at(at_ + 1))) return {};
    const size_t begin = ++at_;
    while (is_digit(at(at_))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void take_denominator(Number& number) {
    if (at(at_) != '/' || !is_digit(at(at_ + 1))) return;
    const size_t slash = at_++;
    const std::string denominator = canonical(take_plain(), "", false);
    if (denominator == "0" || at(at_) == '/') {  // no value, or a date
      at_ = slash + 1;
      return;
    }
    number.text += "/" + denominator;
    number.value /= std::strtod(denominator.c_str(), nullptr);
    number.fraction = true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::optional<Number> last_of(std::string_view text) {
  NumberScanner scanner(text);
  std::optional<Number> last;
  while (std::optional<Number> number = scanner.next()) last = std::move(number);
  return last;
}

// \frac{1}{2} -> 1/2 wherever both parts are short.
std::string with_slashes(std::string_view text) {
  constexpr size_t kLongestFraction = 200;
  std::string out;
  while (true) {
    const size_t at = text.find("frac{");
    if (at == std::string_view::npos) return out += text;
    const size_t command = at > 0 && (text[at - 1] == 'd' || text[at - 1] == 't') ? at - 1 : at;
    const std::string_view parts = text.substr(at + 4, kLongestFraction);
    const size_t middle = closing_brace(parts, 0);
    const bool two = middle + 1 < parts.size() && parts[middle + 1] == '{';
    const size_t close = two ? closing_brace(parts, middle + 1) : std::string_view::npos;
    if (command == 0 || text[command - 1] != '\\' || close == std::string_view::npos) {
      out += text.substr(0, at + 4);
      text.remove_prefix(at + 4);
      continue;
    }
    out += text.substr(0, command - 1);
    out += parts.substr(1, middle - 1);
    out += '/';
    out += parts.substr(middle + 2, close - middle - 2);
    text.remove_prefix(at + 4 + close + 1);
  }
}

// \$ -> $, {,} and \, -> comma, \! -> nothing.
std::string without_latex(std::string_view text) {
  std::string out = replaced(text, "{,}", ",");
  out = replaced(out, "\\,", ",");
  out = replaced(out, "\\!", "");
  out = replaced(out, "\\$", "$");
  return with_slashes(out);
}

std::string_view before_run_on(std::string_view text) {
  constexpr std::string_view kNext = "Question:";
  if (text.starts_with(kNext)) return {};
  const size_t at = text.find("\nQuestion:");
  return text.substr(0, at);
}

// The sentence behind the last "answer is" or "answer:", emphasis in between allowed.
std::optional<std::string_view> stated_answer(std::string_view text) {
  const std::string lower = lower_ascii(text);
  size_t at = std::string::npos;
  while (at != 0 &&
         (at = lower.rfind("answer", at == std::string::npos ? at : at - 1)) != std::string::npos) {
    size_t next = lower.find_first_not_of(" *_", at + 6);
    if (next == std::string::npos) continue;
    if (lower.compare(next, 2, "is") == 0) {
      next += 2;
    } else if (lower[next] == ':') {
      ++next;
    } else {
      continue;
    }
    std::string_view rest = text.substr(next);
    rest = rest.substr(0, rest.find('\n'));
    return rest.substr(0, rest.find(". "));
  }
  return std::nullopt;
}

}  // namespace

bool Number::operator==(const Number& other) const {
  if (!fraction && !other.fraction) return text == other.text;
  return std::fabs(value - other.value) <= 1e-9 * std::max(1.0, std::fabs(other.value));
}

std::optional<Number> last_number(std::string_view text) {
  return last_of(without_latex(with_ascii_digits(text)));
}

std::optional<Number> answer_number(std::string_view answer) {
  const std::string text =
      without_latex(with_ascii_digits(before_run_on(without_thinking(answer))));
  constexpr std::string_view kMark = "####";
  if (const size_t mark = text.find(kMark); mark != std::string::npos) {
    const std::string_view rest = std::string_view(text).substr(mark + kMark.size());
    NumberScanner scanner(rest.substr(0, rest.find('\n')));
    if (std::optional<Number> number = scanner.next()) return number;
  }
  if (const auto boxed = last_boxed(text)) {
    if (std::optional<Number> number = last_of(*boxed)) return number;
  }
  if (const auto stated = stated_answer(text)) {
    if (std::optional<Number> number = last_of(*stated)) return number;
  }
  return last_of(text);
}

}  // namespace winnow::eval
