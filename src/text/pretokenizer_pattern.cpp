#include "text/pretokenizer_pattern.h"

#include <algorithm>

#include "base/error.h"

namespace winnow::text {
namespace {

// \s as Oniguruma and Rust have it: White_Space. PCRE2's adds U+180E.
constexpr std::string_view kSpaces =
    "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
    "\\x{3000}";
// Everything else, for \S inside a class.
constexpr std::string_view kNotSpaces =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";

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
        out_ += in_class_ ? "" : "[";
        replace(2, kSpaces);
        out_ += in_class_ ? "" : "]";
        return;
      case 'S':
        out_ += in_class_ ? "" : "[";
        replace(2, kNotSpaces);
        out_ += in_class_ ? "" : "]";
        return;
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
        property();
        return;
      case 'x':
        copy(braced_end() - at_);
        return;
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

  // PCRE2 takes a bare script name for Script_Extensions: \p{Han} would hold the middle dot.
  void property() {
    const size_t end = braced_end();
    const std::string_view text = pattern_.substr(at_, end - at_);
    const size_t name = text.find_first_not_of('^', 3);
    const bool is_script = name != std::string_view::npos && text.size() - name > 3 &&
                           text.substr(name) != "Any}" &&
                           text.find_first_of("=:&") == std::string_view::npos;
    if (is_script) {
      replace(text.size(), fmt::format("{}sc:{}", text.substr(0, name), text.substr(name)));
    } else {
      copy(text.size());
    }
  }

  void class_char(char c) {
    if (looking_at("&&")) refuse("a class intersection");
    if (looking_at("[:")) {
      copy(std::min(pattern_.find(":]", at_), pattern_.size() - 2) + 2 - at_);
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
      copy(known->size());
    } else if (looking_at("(*")) {
      refuse("(*");
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
};

}  // namespace

std::string translate_pattern(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace winnow::text
