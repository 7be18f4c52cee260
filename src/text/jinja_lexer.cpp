#include "text/jinja_lexer.h"

#include <charconv>
#include <cstdlib>

#include "text/jinja_value.h"

namespace winnow::text::jinja {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

std::string normalized_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) next_stretch();
    add(Token::Kind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) const {
    TemplateError error(TemplateError::Kind::kSyntax, message);
    error.line = line_;
    throw error;
  }

  bool looking_at(std::string_view text, size_t at) const {
    return std::string_view(source_).substr(at, text.size()) == text;
  }
  bool looking_at(std::string_view text) const { return looking_at(text, at_); }

  void add(Token::Kind kind, std::string text = "") {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }

  // Moves on, counting lines.
  void advance(size_t to) {
    for (; at_ < to; ++at_) line_ += source_[at_] == '\n';
  }

  size_t after_spaces(size_t at) const {
    while (at < source_.size() && is_space(character_at(source_, at))) {
      at += character_bytes(source_, at);
    }
    return at;
  }

  // Text up to the next tag, and the tag.
  void next_stretch() {
    size_t tag = at_;
    do {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) break;
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    } while (true);
    if (tag == std::string::npos) {
      add_text(at_, source_.size());
      advance(source_.size());
      return;
    }
    const char type = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    add_stripped_text(tag, sign, type != '{');
    advance(tag + 2);
    if (sign == '-' || sign == '+') advance(at_ + 1);
    if (type == '#') {
      comment();
    } else if (type == '%' && !raw_block()) {
      tag_content(Token::Kind::kBlockBegin, Token::Kind::kBlockEnd);
    } else if (type == '{') {
      tag_content(Token::Kind::kVariableBegin, Token::Kind::kVariableEnd);
    }
  }

  void add_text(size_t begin, size_t end) {
    if (begin < end) add(Token::Kind::kText, source_.substr(begin, end - begin));
  }

  // The text before a tag: cut by "{%-", or by lstrip_blocks where only blanks stand before the
  // tag on its line.
  void add_stripped_text(size_t tag, char sign, bool lstrips) {
    const std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    size_t end = tag;
    if (sign == '-') {
      end = at_ + stripped_range(text, false, true).end;
    } else if (sign != '+' && lstrips) {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      const bool starts_line = line_begin > 0 || line_starting_;
      if (starts_line && after_spaces(at_ + line_begin) >= tag) end = at_ + line_begin;
    }
    add_text(at_, end);
    advance(tag);
  }

  // Behind the closing tag at close (2 bytes): newline or blanks that its sign takes along.
  void close_tag(size_t close, char sign, bool trims_newline) {
    size_t to = close + 2;
    if (sign == '-') {
      to = after_spaces(to);
    } else if (sign != '+' && trims_newline && to < source_.size() && source_[to] == '\n') {
      ++to;
    }
    advance(to);
    line_starting_ = source_[to - 1] == '\n';
  }

  void comment() {
    const size_t close = source_.find("#}", at_);
    if (close == std::string::npos) fail_here("Missing end of comment tag");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    close_tag(close, sign, true);
  }

  // True when this was {% raw %}: then it is all consumed.
  bool raw_block() {
    size_t to = after_spaces(at_);
    if (!looking_at("raw", to)) return false;
    to = after_spaces(to + 3);
    char sign = '\0';
    if (to < source_.size() && source_[to] == '-') sign = source_[to++];
    if (!looking_at("%}", to)) return false;
    close_tag(to, sign, false);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string::npos; tag += 2) {
      const char open_sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      size_t at = after_spaces(tag + (open_sign == '-' || open_sign == '+' ? 3 : 2));
      if (!looking_at("endraw", at)) continue;
      at = after_spaces(at + 6);
      char close_sign = '\0';
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) {
        close_sign = source_[at++];
      }
      if (!looking_at("%}", at)) continue;
      add_stripped_text(tag, open_sign, true);
      close_tag(at, close_sign, true);
      return true;
    }
    fail_here("Missing end of raw directive");
  }

  void tag_content(Token::Kind begin, Token::Kind end) {
    const bool block = begin == Token::Kind::kBlockBegin;
    const std::string_view close = block ? "%}" : "}}";
    std::string open_braces;
    add(begin);
    while (true) {
      advance(after_spaces(at_));
      if (at_ >= source_.size()) return;  // the parser says what is missing
      if (open_braces.empty()) {
        const char sign = source_[at_];
        const bool signed_close =
            (sign == '-' || (sign == '+' && block)) && looking_at(close, at_ + 1);
        if (signed_close || looking_at(close)) {
          add(end);
          close_tag(signed_close ? at_ + 1 : at_, signed_close ? sign : '\0', block);
          return;
        }
      }
      token(open_braces);
    }
  }

  void token(std::string& open_braces) {
    const char c = source_[at_];
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name_part(source_[end])) ++end;
      add(Token::Kind::kName, source_.substr(at_, end - at_));
      advance(end);
    } else if (is_digit(c)) {
      number();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      operator_token(open_braces);
    }
  }

  // Digits of the given base with single underscores between them.
  size_t digits(size_t at, int base, std::string& out) const {
    auto is_base_digit = [base](char c) {
      const int value = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      return value < base;
    };
    while (at < source_.size()) {
      const bool underscore =
          source_[at] == '_' && at + 1 < source_.size() && is_base_digit(source_[at + 1]);
      if (underscore) ++at;
      if (!is_base_digit(source_[at])) break;
      out.push_back(source_[at++]);
    }
    return at;
  }

  void number() {
    std::string text;
    int base = 10;
    size_t end = at_;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char x = static_cast<char>(source_[at_ + 1] | 0x20);
      base = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
    }
    end = digits(base == 10 ? at_ : at_ + 2, base, text);
    Token token;
    token.kind = Token::Kind::kInteger;
    token.line = line_;
    if (base == 10) end = fraction(end, text, token);
    if (token.kind == Token::Kind::kInteger) {
      auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), token.integer, base);
      if (ec != std::errc() || ptr != text.data() + text.size()) fail_here("invalid integer");
    } else {
      token.number = std::strtod(text.c_str(), nullptr);
    }
    tokens_.push_back(std::move(token));
    advance(end);
  }

  size_t fraction(size_t end, std::string& text, Token& token) const {
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      text.push_back('.');
      end = digits(end + 1, 10, text);
      token.kind = Token::Kind::kFloat;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      std::string sign;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        sign = source_[exponent++];
      }
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        text += 'e';
        text += sign;
        end = digits(exponent, 10, text);
        token.kind = Token::Kind::kFloat;
      }
    }
    return end;
  }

  void string(char quote) {
    std::string out;
    size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\' && at + 1 < source_.size()) {
        at = escape(at + 1, out);
      } else {
        out.push_back(source_[at++]);
      }
    }
    if (at >= source_.size()) fail_here("unterminated string");
    add(Token::Kind::kString, std::move(out));
    advance(at + 1);
  }

  // Python's escapes; what is none stays as written.
  size_t escape(size_t at, std::string& out) const {
    const char c = source_[at];
    static constexpr std::string_view kNames = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      out.push_back(kValues[i]);
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') return coded(at, 3, 8, false, out);
    if (c == 'x') return coded(at + 1, 2, 16, true, out);
    if (c == 'u') return coded(at + 1, 4, 16, true, out);
    if (c == 'U') return coded(at + 1, 8, 16, true, out);
    out.push_back('\\');
    const size_t bytes = character_bytes(source_, at);
    out.append(source_, at, bytes);
    return at + bytes;
  }

  size_t coded(size_t at, size_t max_digits, int base, bool exact, std::string& out) const {
    const char* begin = source_.data() + at;
    const char* end = begin + std::min(max_digits, source_.size() - at);
    uint32_t value = 0;
    auto [ptr, ec] = std::from_chars(begin, end, value, base);
    const auto length = static_cast<size_t>(ptr - begin);
    if (ec != std::errc() || (exact && length != max_digits) || value > 0x10FFFF) {
      fail_here("invalid escape in a string");
    }
    append_character(out, value);
    return at + length;
  }

  void operator_token(std::string& open_braces) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    for (std::string_view op : kTwo) {
      if (looking_at(op)) {
        add(Token::Kind::kOperator, std::string(op));
        advance(at_ + 2);
        return;
      }
    }
    const char c = source_[at_];
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
      fail_here(
          fmt::format("unexpected char '{}'", source_.substr(at_, character_bytes(source_, at_))));
    }
    if (c == '(' || c == '[' || c == '{') open_braces.push_back(c);
    if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_braces.empty() || open_braces.back() != open) {
        fail_here(fmt::format("unexpected '{}'", c));
      }
      open_braces.pop_back();
    }
    add(Token::Kind::kOperator, std::string(1, c));
    advance(at_ + 1);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace winnow::text::jinja
