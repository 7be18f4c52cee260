#include "text/pretokenizer_pattern.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/pcre_properties.h"

namespace winnow::text {
namespace {

// POSIX brackets that mean a property; the others' members differ between the two engines.
constexpr std::pair<std::string_view, std::string_view> kPosixBrackets[] = {
    {"[:alpha:]", "Alphabetic"},
    {"[:digit:]", "Nd"},
    {"[:space:]", "White_Space"},
    {"[:word:]", "Word"}};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        class_char(c);
      } else {
        plain_char(c);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw_error("{}: {} at \"{}\" is not supported", where_, what, pattern_.substr(at_));
  }
  bool looking_at(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }
  void replace(size_t count, std::string_view text) {
    out_ += text;
    at_ += count;
  }

  void escape() {
    if (at_ + 1 == pattern_.size()) refuse("a lone backslash");
    switch (pattern_[at_ + 1]) {
      case 's':
      case 'S':
        return members(2, "White_Space", pattern_[at_ + 1] == 'S');
      case 'd':
      case 'D':
        return members(2, "Nd", pattern_[at_ + 1] == 'D');
      case 'w':
      case 'W':
        return members(2, "Word", pattern_[at_ + 1] == 'W');
      case 'b':
      case 'B':
        return in_class_ ? copy(2) : word_boundary(pattern_[at_ + 1] == 'B');
      case 'u': {
        const std::string_view hex = pattern_.substr(at_ + 2, 4);
        const bool valid = hex.size() == 4 && hex.find_first_not_of("0123456789abcdefABCDEF") ==
                                                  std::string_view::npos;
        if (!valid) refuse("\\u without four hex digits");
        replace(6, "\\x{" + std::string(hex) + "}");
        return;
      }
      case 'p':
      case 'P':
        return property();
      case 'x':
        return copy(braced_end() - at_);
      case 'h':
      case 'H':
        refuse("\\h (a hexadecimal digit)");
      case 'Q':
      case 'E':
        refuse("\\Q");
      default:
        copy(2);
    }
  }

  // Behind the braces of \p{...} and \x{...}, or behind the letter where there are none.
  size_t braced_end() const {
    if (!pattern_.substr(at_ + 2).starts_with('{')) return at_ + 2;
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) refuse("an open {");
    return close + 1;
  }

  // Writes the members of a property that our tables know. Outside a class case does not matter to
  // a property, in one it does: both as in Oniguruma.
  void members(size_t count, std::string_view name, bool negated) {
    if (!in_class_) {
      replace(count,
              fmt::format("(?-i:[{}{}])", negated ? "^" : "", properties_.class_of_property(name)));
    } else if (negated) {
      replace(count, class_of(difference(*property_ranges("Any"), *property_ranges(name))));
    } else if (caseless_.back()) {
      replace(count, class_of(*property_ranges(name)));
    } else {
      replace(count, properties_.class_of_property(name));
    }
  }

  void word_boundary(bool negated) {
    const std::string word = "(?-i:[" + properties_.class_of_property("Word") + "])";
    replace(2, fmt::format(fmt::runtime(negated ? "(?:(?<={0})(?={0})|(?<!{0})(?!{0}))"
                                                : "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))"),
                           word));
  }

  void property() {
    if (!pattern_.substr(at_ + 2).starts_with('{')) refuse("a property without braces");
    const size_t end = braced_end();
    std::string_view name = pattern_.substr(at_ + 3, end - 1 - (at_ + 3));
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    const bool negated = inverted != (pattern_[at_ + 1] == 'P');
    if (property_ranges(name)) return members(end - at_, name, negated);
    if (name.find_first_of("=:&^") != std::string_view::npos) refuse("this property");
    // PCRE2 takes a bare script name for Script_Extensions: \p{Greek} would hold marks of others.
    replace(end - at_, fmt::format("\\{}{{sc:{}}}", negated ? 'P' : 'p', name));
  }

  void posix_bracket() {
    for (const auto& [bracket, name] : kPosixBrackets) {
      if (looking_at(bracket)) return members(bracket.size(), name, false);
    }
    refuse("this bracket");
  }

  void class_char(char c) {
    if (looking_at("&&")) refuse("a class intersection");
    if (looking_at("[:")) {
      posix_bracket();
    } else if (c == '[') {
      refuse("a class within a class");
    } else {
      if (c == ']') in_class_ = false;
      copy(1);
    }
  }

  void plain_char(char c) {
    if (c == '[') {
      in_class_ = true;
      copy(1);
      if (looking_at("^")) copy(1);
      if (looking_at("]")) copy(1);  // literal at the front
    } else if (looking_at("(?")) {
      static constexpr std::string_view kKnown[] = {
          "(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
      const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                       [&](std::string_view k) { return looking_at(k); });
      if (known == std::end(kKnown)) refuse("this group");
      if (*known == "(?i)") {  // to the end of the group that it stands in
        caseless_.back() = true;
      } else {
        caseless_.push_back(caseless_.back() || *known == "(?i:");
      }
      copy(known->size());
    } else if (looking_at("(*")) {
      refuse("(*");
    } else if (c == '(') {
      caseless_.push_back(caseless_.back());
      copy(1);
    } else if (c == ')') {
      if (caseless_.size() == 1) refuse("a ) without a (");
      caseless_.pop_back();
      copy(1);
    } else if (looking_at("}+")) {
      refuse("a + behind {n,m}");
    } else {
      copy(1);
    }
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::vector<bool> caseless_{false};  // of each open group
  PcreProperties properties_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace winnow::text
