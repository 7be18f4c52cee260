#include "eval/latex_notation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "eval/boxed.h"
#include "eval/text_folding.h"

namespace winnow::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// What a command becomes. One that is not named stays.
constexpr std::array<std::pair<std::string_view, std::string_view>, 35> kCommands = {{
    {"left", ""},        {"right", ""},     {"big", ""},           {"Big", ""},
    {"bigl", ""},        {"bigr", ""},      {"displaystyle", ""},  {"quad", " "},
    {"qquad", " "},      {"limits", ""},    {"dfrac", "\\frac"},   {"tfrac", "\\frac"},
    {"cfrac", "\\frac"}, {"cdot", "*"},     {"times", "*"},        {"ast", "*"},
    {"div", "/"},        {"leq", "\\le"},   {"geq", "\\ge"},       {"neq", "\\ne"},
    {"lbrace", "\\{"},   {"rbrace", "\\}"}, {"dbinom", "\\binom"}, {"tbinom", "\\binom"},
    {"lvert", "|"},      {"rvert", "|"},    {"vert", "|"},         {"lbrack", "["},
    {"rbrack", "]"},     {"degree", ""},    {"circ", ""},          {"emptyset", "\\varnothing"},
    {"colon", ":"},      {"notag", ""},     {"mid", "|"},
}};
constexpr std::array<std::string_view, 12> kTextCommands = {
    "text",   "textbf", "textrm", "textit", "mbox",         "mathrm",
    "mathbf", "mathit", "mathsf", "hbox",   "operatorname", "boxed"};

bool is_text_command(std::string_view name) {
  return std::find(kTextCommands.begin(), kTextCommands.end(), name) != kTextCommands.end();
}

// Rewrites command by command.
class CommandPass {
 public:
  explicit CommandPass(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        take_command();
      } else {
        if (text_[at_] != '$') out_.push_back(text_[at_]);
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  void take_command() {
    size_t end = at_ + 1;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    if (end == at_ + 1) return take_sign();
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    if (is_text_command(name) && at_ < text_.size() && text_[at_] == '{') return take_text(name);
    for (const auto& [from, to] : kCommands) {
      if (name == from) {
        out_ += to;
        return;
      }
    }
    (out_ += '\\') += name;
    // The letter that follows is no part of the name.
    if (at_ < text_.size() && text_[at_] == ' ') out_.push_back(' ');
  }

  // \, \$ \{ and their like.
  void take_sign() {
    const char sign = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    at_ = std::min(at_ + 2, text_.size());
    if (sign == '{' || sign == '}' || sign == '\\') {
      (out_ += '\\') += sign;
    } else if (sign == '%' || sign == '&' || sign == '|') {
      out_.push_back(sign);
    } else if (sign == ' ') {
      out_.push_back(' ');
    }
  }

  // Words stay where they are the answer, and go where they are a unit behind it.
  void take_text(std::string_view name) {
    const size_t close = closing_brace(text_, at_);
    if (close == std::string_view::npos) return;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    const std::string_view word = trimmed(inside);
    if (name == "boxed") {
      out_ += CommandPass(inside).run();
    } else if (word == "and" || word == "or") {
      ((out_ += ' ') += word) += ' ';
    } else if (name == "mathrm" || name == "operatorname" || trimmed(out_).empty()) {
      out_ += inside;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

// 1,234 and 12,345,678.9 as a whole answer; "100, 200" is a list.
std::string without_thousands(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  const size_t first = digits.find(',');
  if (first == std::string_view::npos || first == 0 || first > 3) return std::string(text);
  size_t since_comma = 3;
  bool decimals = false;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (is_digit(digits[i])) {
      ++since_comma;
      continue;
    }
    const bool in_place = i <= first || since_comma == 3;
    if (decimals || !in_place || (digits[i] != ',' && digits[i] != '.')) return std::string(text);
    decimals = digits[i] == '.';
    since_comma = 0;
  }
  if (!decimals && since_comma != 3) return std::string(text);
  return replaced(text, ",", "");
}

bool is_unit(std::string_view word) {
  const size_t power = word.find('^');
  const std::string_view name = word.substr(0, power);
  return name.size() >= 2 && name.find('\\') == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), is_letter);
}

// Has a value of its own: digits, signs, fractions, roots.
bool is_number(std::string_view text) {
  std::string rest(text);
  for (const std::string_view command : {"\\frac", "\\sqrt", "\\pi"}) {
    rest = replaced(rest, command, "");
  }
  return !rest.empty() && std::none_of(rest.begin(), rest.end(), is_letter);
}

// "12 square cm^2" -> "12": only behind a number.
std::string_view without_units(std::string_view text) {
  std::string_view number = text;
  while (true) {
    const size_t space = number.rfind(' ');
    if (space == std::string_view::npos || !is_unit(number.substr(space + 1))) break;
    number = trimmed(number.substr(0, space));
  }
  return is_number(number) ? number : text;
}

// x_{1} -> x_1, x^{2} -> x^2
std::string without_lone_braces(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out.push_back(text[i]);
    const bool index = text[i] == '_' || text[i] == '^';
    if (index && i + 3 < text.size() && text[i + 1] == '{' && text[i + 3] == '}') {
      out.push_back(text[i + 2]);
      i += 3;
    }
  }
  return out;
}

}  // namespace

std::string plain_latex(std::string_view latex) {
  std::string text = replaced(latex, "{,}", ",");
  for (const std::string_view sign : {"\\(", "\\)", "\\[", "\\]", "**", "\xC2\xB0"}) {
    text = replaced(text, sign, "");
  }
  text = replaced(text, "\xCF\x80", "\\pi ");
  text = replaced(text, "\xE2\x88\x9A", "\\sqrt ");
  text = CommandPass(text).run();
  text = replaced(replaced(text, " and ", ", "), " or ", ", ");
  text = replaced(replaced(text, "^{}", ""), ", ,", ",");
  text = replaced(text, "%", "");
  std::string_view core = trimmed(text);
  while (!core.empty() && (core.back() == '.' || core.back() == ',' || core.back() == '^')) {
    core = trimmed(core.substr(0, core.size() - 1));
  }
  const std::string number = without_thousands(without_units(core));
  std::string out;
  for (size_t i = 0; i < number.size(); ++i) {
    if (number[i] != ' ' && number[i] != '\n' && number[i] != '\t' && number[i] != '~') {
      out.push_back(number[i]);
    } else if (i + 1 < number.size() && is_letter(number[i + 1]) && !out.empty() &&
               is_letter(out.back())) {
      out.push_back(' ');  // keeps "\pi x" and two words apart
    }
  }
  return without_lone_braces(out);
}

}  // namespace winnow::eval
