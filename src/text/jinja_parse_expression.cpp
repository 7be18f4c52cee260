#include <algorithm>

#include "text/jinja_parser.h"

namespace winnow::text::jinja {

namespace {

constexpr int kMaxNesting = 200;    // of parser calls
constexpr int kMaxExprDepth = 200;  // of the tree: a + b + c + ... leans to the left

std::unique_ptr<Expr> node(Expr::Kind kind, int line) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

}  // namespace

NestingGuard::NestingGuard(int& nesting) : nesting_(nesting) {
  if (++nesting_ > kMaxNesting) {
    --nesting_;
    fail(TemplateError::Kind::kLimit, "the template is nested too deeply");
  }
}

void ExpressionParser::fail_at(int line, const std::string& message) const {
  TemplateError error(TemplateError::Kind::kSyntax, message);
  error.line = line;
  throw error;
}

void ExpressionParser::fail_here(const std::string& message) const {
  fail_at(current().line, message);
}

Token ExpressionParser::take() {
  Token token = current();
  if (token.kind != Token::Kind::kEnd) ++at_;
  return token;
}

bool ExpressionParser::skip_operator(std::string_view op) {
  if (!current().is_operator(op)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

Token ExpressionParser::expect(Token::Kind kind, const char* what) {
  if (current().kind == Token::Kind::kEnd && kind != Token::Kind::kEnd) {
    fail_here(fmt::format("unexpected end of template, expected {}", what));
  }
  if (current().kind != kind) {
    fail_here(fmt::format("expected {}, got '{}'", what, current().text));
  }
  return take();
}

void ExpressionParser::expect_operator(std::string_view op) {
  if (skip_operator(op)) return;
  fail_here(fmt::format("expected '{}', got '{}'", op, current().text));
}

ExprPtr ExpressionParser::finish(std::unique_ptr<Expr> expr) const {
  int deepest = 0;
  auto look = [&](const ExprPtr& child) {
    if (child) deepest = std::max(deepest, child->depth);
  };
  for (const ExprPtr& child : expr->children) look(child);
  for (const ExprPtr& child : expr->positional) look(child);
  for (const auto& [name, child] : expr->named) look(child);
  look(expr->star_positional);
  look(expr->star_named);
  expr->depth = deepest + 1;
  if (expr->depth > kMaxExprDepth) {
    fail(TemplateError::Kind::kLimit, "an expression is nested too deeply");
  }
  return expr;
}

ExprPtr ExpressionParser::binary(
    Expr::Kind kind, std::string op, int line, ExprPtr left, ExprPtr right) {
  auto expr = node(kind, line);
  expr->name = std::move(op);
  expr->children.push_back(std::move(left));
  expr->children.push_back(std::move(right));
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_expression(bool with_condition) {
  return with_condition ? parse_condition() : parse_or();
}

ExprPtr ExpressionParser::parse_condition() {
  NestingGuard guard(nesting_);
  ExprPtr value = parse_or();
  while (current().is_name("if")) {
    auto expr = node(Expr::Kind::kCondition, take().line);
    ExprPtr test = parse_or();
    ExprPtr otherwise = skip_name("else") ? parse_condition() : nullptr;
    expr->children.push_back(std::move(value));
    expr->children.push_back(std::move(test));
    expr->children.push_back(std::move(otherwise));
    value = finish(std::move(expr));
  }
  return value;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (current().is_name("or")) {
    const int line = take().line;
    left = binary(Expr::Kind::kOr, "or", line, std::move(left), parse_and());
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (current().is_name("and")) {
    const int line = take().line;
    left = binary(Expr::Kind::kAnd, "and", line, std::move(left), parse_not());
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  NestingGuard guard(nesting_);
  auto expr = node(Expr::Kind::kNot, take().line);
  expr->children.push_back(parse_not());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_compare() {
  static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  const int line = current().line;
  ExprPtr first = parse_sum();
  std::unique_ptr<Expr> expr;
  while (true) {
    std::string op;
    if (current().kind == Token::Kind::kOperator &&
        std::find(std::begin(kOperators), std::end(kOperators), current().text) !=
            std::end(kOperators)) {
      op = take().text;
    } else if (skip_name("in")) {
      op = "in";
    } else if (current().is_name("not") && look_ahead().is_name("in")) {
      take();
      take();
      op = "not in";
    } else {
      break;
    }
    if (!expr) {
      expr = node(Expr::Kind::kCompare, line);
      expr->children.push_back(std::move(first));
    }
    expr->operators.push_back(std::move(op));
    expr->children.push_back(parse_sum());
  }
  return expr ? finish(std::move(expr)) : std::move(first);
}

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (current().is_operator("+") || current().is_operator("-")) {
    const Token op = take();
    left = binary(Expr::Kind::kBinary, op.text, op.line, std::move(left), parse_concat());
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const int line = current().line;
  ExprPtr first = parse_product();
  if (!current().is_operator("~")) return first;
  auto expr = node(Expr::Kind::kConcat, line);
  expr->children.push_back(std::move(first));
  while (skip_operator("~")) expr->children.push_back(parse_product());
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_product() {
  ExprPtr left = parse_power();
  while (current().is_operator("*") || current().is_operator("/") || current().is_operator("//") ||
         current().is_operator("%")) {
    const Token op = take();
    left = binary(Expr::Kind::kBinary, op.text, op.line, std::move(left), parse_power());
  }
  return left;
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr left = parse_unary();
  while (current().is_operator("**")) {
    const Token op = take();
    left = binary(Expr::Kind::kBinary, op.text, op.line, std::move(left), parse_unary());
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  NestingGuard guard(nesting_);
  ExprPtr value;
  if (current().is_operator("-") || current().is_operator("+")) {
    const Token op = take();
    auto expr = node(op.text == "-" ? Expr::Kind::kNegate : Expr::Kind::kPlus, op.line);
    expr->children.push_back(parse_unary(false));
    value = finish(std::move(expr));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filter_expression(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::parse_name_or_literal() {
  const Token token = take();
  auto expr = node(Expr::Kind::kConst, token.line);
  if (token.kind == Token::Kind::kName) {
    if (token.text == "true" || token.text == "True") {
      expr->constant = Value(true);
    } else if (token.text == "false" || token.text == "False") {
      expr->constant = Value(false);
    } else if (token.text == "none" || token.text == "None") {
      expr->constant = None{};
    } else {
      expr->kind = Expr::Kind::kName;
      expr->name = token.text;
      saw_varargs_ |= token.text == "varargs";
      saw_kwargs_ |= token.text == "kwargs";
      saw_caller_ |= token.text == "caller";
    }
  } else if (token.kind == Token::Kind::kString) {
    std::string text = token.text;
    while (current().kind == Token::Kind::kString) text += take().text;
    expr->constant = Value::text(text);
  } else if (token.kind == Token::Kind::kInteger) {
    expr->constant = Value(token.integer);
  } else {
    expr->constant = Value(token.number);
  }
  return expr;
}

ExprPtr ExpressionParser::parse_primary() {
  switch (current().kind) {
    case Token::Kind::kName:
    case Token::Kind::kString:
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return parse_name_or_literal();
    default:
      break;
  }
  if (skip_operator("(")) {
    ExprPtr inner = parse_tuple(true, "", true);
    expect_operator(")");
    return inner;
  }
  if (current().is_operator("[")) return parse_list();
  if (current().is_operator("{")) return parse_dict();
  if (current().kind == Token::Kind::kEnd) fail_here("unexpected end of template");
  fail_here(current().text.empty() ? "expected an expression"
                                   : fmt::format("unexpected '{}'", current().text));
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  const Token& token = current();
  return token.kind == Token::Kind::kVariableEnd || token.kind == Token::Kind::kBlockEnd ||
         token.is_operator(")") || (!end_name.empty() && token.is_name(end_name));
}

ExprPtr ExpressionParser::parse_tuple(bool with_condition,
                                      std::string_view end_name,
                                      bool parenthesized) {
  auto tuple = node(Expr::Kind::kTuple, current().line);
  bool is_tuple = false;
  while (true) {
    if (!tuple->children.empty()) expect_operator(",");
    if (at_tuple_end(end_name)) break;
    tuple->children.push_back(parse_expression(with_condition));
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!tuple->children.empty()) return std::move(tuple->children.front());
    if (!parenthesized) fail_here("expected an expression");
  }
  return finish(std::move(tuple));
}

ExprPtr ExpressionParser::parse_list() {
  auto expr = node(Expr::Kind::kList, take().line);
  while (!current().is_operator("]")) {
    if (!expr->children.empty()) expect_operator(",");
    if (current().is_operator("]")) break;
    expr->children.push_back(parse_expression());
  }
  expect_operator("]");
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_dict() {
  auto expr = node(Expr::Kind::kDict, take().line);
  while (!current().is_operator("}")) {
    if (!expr->children.empty()) expect_operator(",");
    if (current().is_operator("}")) break;
    expr->children.push_back(parse_expression());
    expect_operator(":");
    expr->children.push_back(parse_expression());
  }
  expect_operator("}");
  return finish(std::move(expr));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr input) {
  while (true) {
    if (current().is_operator(".") || current().is_operator("[")) {
      input = parse_subscript(std::move(input));
    } else if (current().is_operator("(")) {
      input = parse_call(std::move(input));
    } else {
      return input;
    }
  }
}

ExprPtr ExpressionParser::parse_filter_expression(ExprPtr input) {
  while (true) {
    if (current().is_operator("|")) {
      input = parse_filters(std::move(input), false);
    } else if (current().is_name("is")) {
      input = parse_test(std::move(input));
    } else if (current().is_operator("(")) {
      input = parse_call(std::move(input));
    } else {
      return input;
    }
  }
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr input) {
  const Token op = take();
  if (op.text == ".") {
    const Token token = take();
    if (token.kind == Token::Kind::kName) {
      auto expr = node(Expr::Kind::kAttribute, op.line);
      expr->name = token.text;
      expr->children.push_back(std::move(input));
      return finish(std::move(expr));
    }
    if (token.kind != Token::Kind::kInteger) fail_at(token.line, "expected name or number");
    auto index = node(Expr::Kind::kConst, token.line);
    index->constant = Value(token.integer);
    return binary(Expr::Kind::kItem, "", op.line, std::move(input), std::move(index));
  }
  ExprPtr index = parse_subscribed();
  if (current().is_operator(",")) {
    auto tuple = node(Expr::Kind::kTuple, op.line);
    tuple->children.push_back(std::move(index));
    while (skip_operator(",")) tuple->children.push_back(parse_expression());
    index = finish(std::move(tuple));
  }
  expect_operator("]");
  return binary(Expr::Kind::kItem, "", op.line, std::move(input), std::move(index));
}

ExprPtr ExpressionParser::parse_subscribed() {
  const int line = current().line;
  ExprPtr first;
  if (!current().is_operator(":")) {
    first = parse_expression();
    if (!current().is_operator(":")) return first;
  }
  auto slice = node(Expr::Kind::kSlice, line);
  slice->children.push_back(std::move(first));
  auto part = [&]() -> ExprPtr {
    if (!skip_operator(":")) return nullptr;
    if (current().is_operator(":") || current().is_operator("]") || current().is_operator(",")) {
      return nullptr;
    }
    return parse_expression();
  };
  slice->children.push_back(part());
  slice->children.push_back(part());
  return finish(std::move(slice));
}

void ExpressionParser::parse_arguments(Expr& into) {
  const int line = current().line;
  expect_operator("(");
  bool first = true;
  auto ensure = [&](bool fine) {
    if (!fine) fail_at(line, "invalid syntax for function call expression");
  };
  while (!current().is_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (current().is_operator(")")) break;
    }
    first = false;
    if (skip_operator("*")) {
      ensure(!into.star_positional && !into.star_named);
      into.star_positional = parse_expression();
    } else if (skip_operator("**")) {
      ensure(!into.star_named);
      into.star_named = parse_expression();
    } else if (current().kind == Token::Kind::kName && look_ahead().is_operator("=")) {
      ensure(!into.star_named);
      std::string name = take().text;
      take();
      into.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!into.star_positional && !into.star_named && into.named.empty());
      into.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  auto expr = node(Expr::Kind::kCall, current().line);
  expr->children.push_back(std::move(callee));
  parse_arguments(*expr);
  return finish(std::move(expr));
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = expect(Token::Kind::kName, "a name").text;
  while (skip_operator(".")) {
    name.push_back('.');
    name += expect(Token::Kind::kName, "a name").text;
  }
  return name;
}

ExprPtr ExpressionParser::parse_filters(ExprPtr input, bool inline_start) {
  while (inline_start || current().is_operator("|")) {
    if (!inline_start) take();
    inline_start = false;
    auto expr = node(Expr::Kind::kFilter, current().line);
    expr->name = parse_dotted_name();
    expr->children.push_back(std::move(input));
    if (current().is_operator("(")) parse_arguments(*expr);
    input = finish(std::move(expr));
  }
  return input;
}

ExprPtr ExpressionParser::parse_test(ExprPtr input) {
  const int line = take().line;
  const bool negated = skip_name("not");
  auto expr = node(Expr::Kind::kTest, line);
  expr->name = parse_dotted_name();
  expr->children.push_back(std::move(input));
  const Token& next = current();
  const bool starts_value =
      next.kind == Token::Kind::kString || next.kind == Token::Kind::kInteger ||
      next.kind == Token::Kind::kFloat || next.is_operator("[") || next.is_operator("{") ||
      (next.kind == Token::Kind::kName && next.text != "else" && next.text != "or" &&
       next.text != "and");
  if (next.is_operator("(")) {
    parse_arguments(*expr);
  } else if (starts_value) {
    if (next.is_name("is")) fail_here("You cannot chain multiple tests with is");
    ExprPtr argument = parse_primary();
    expr->positional.push_back(parse_postfix(std::move(argument)));
  }
  ExprPtr result = finish(std::move(expr));
  if (!negated) return result;
  auto inverted = node(Expr::Kind::kNot, line);
  inverted->children.push_back(std::move(result));
  return finish(std::move(inverted));
}

}  // namespace winnow::text::jinja
