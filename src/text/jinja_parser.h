// Tokens to a syntax tree, by Jinja's grammar and precedences.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace winnow::text::jinja {

// Throws TemplateError kSyntax or kLimit with its line. Filters and tests are looked up when they
// run: what a branch that is never taken asks for does not matter.
Body parse_template(std::string_view source);

// Expressions alone; the statement parser builds on it.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  ExprPtr parse_expression(bool with_condition = true);
  // Expressions with commas between them make a tuple. end_name: a name that ends it as well.
  ExprPtr parse_tuple(bool with_condition,
                      std::string_view end_name = "",
                      bool parenthesized = false);
  // `| name(...)` as often as it stands there. inline_start: the first without its bar.
  ExprPtr parse_filters(ExprPtr input, bool inline_start);

  const Token& current() const { return tokens_[at_]; }
  const Token& look_ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  Token expect(Token::Kind kind, const char* what);
  void expect_operator(std::string_view op);
  [[noreturn]] void fail_at(int line, const std::string& message) const;
  [[noreturn]] void fail_here(const std::string& message) const;

  // Names that a macro body was seen to use.
  bool saw_varargs_ = false;
  bool saw_kwargs_ = false;
  bool saw_caller_ = false;
  int nesting_ = 0;  // of parser calls, bounded

 private:
  ExprPtr parse_condition();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters = true);
  ExprPtr parse_primary();
  ExprPtr parse_name_or_literal();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr input);
  ExprPtr parse_filter_expression(ExprPtr input);
  ExprPtr parse_subscript(ExprPtr input);
  ExprPtr parse_subscribed();
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_test(ExprPtr input);
  void parse_arguments(Expr& into);
  std::string parse_dotted_name();
  bool at_tuple_end(std::string_view end_name) const;
  ExprPtr binary(Expr::Kind kind, std::string op, int line, ExprPtr left, ExprPtr right);
  ExprPtr finish(std::unique_ptr<Expr> expr) const;  // sets depth

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// Counts parser calls below each other for as long as it lives.
class NestingGuard {
 public:
  explicit NestingGuard(int& nesting);
  ~NestingGuard() { --nesting_; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  int& nesting_;
};

}  // namespace winnow::text::jinja
