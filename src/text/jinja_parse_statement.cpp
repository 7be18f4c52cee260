#include "text/jinja_parser.h"

namespace winnow::text::jinja {

namespace {

constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

class StatementParser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body parse() {
    Body body = parse_until({});
    if (current().kind != Token::Kind::kEnd) fail_here("unexpected end of a block");
    return body;
  }

  int line() const { return current().line; }

 private:
  using Names = std::initializer_list<std::string_view>;

  bool at_any(Names names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return current().is_name(name); });
  }

  // Statements up to a tag that starts with one of the names; that name is then the current token.
  Body parse_until(Names ends) {
    Body body;
    while (current().kind != Token::Kind::kEnd) {
      const Token token = take();
      if (token.kind == Token::Kind::kText) {
        auto stmt = statement(Stmt::Kind::kText, token.line);
        stmt->text = token.text;
        body.push_back(std::move(stmt));
      } else if (token.kind == Token::Kind::kVariableBegin) {
        auto stmt = statement(Stmt::Kind::kOutput, token.line);
        stmt->value = parse_tuple(true);
        expect(Token::Kind::kVariableEnd, "'}}'");
        body.push_back(std::move(stmt));
      } else if (token.kind == Token::Kind::kBlockBegin) {
        if (at_any(ends)) return body;
        body.push_back(parse_statement());
        expect(Token::Kind::kBlockEnd, "'%}'");
      } else {
        fail_at(token.line, "unexpected token");
      }
    }
    if (ends.size() > 0) {
      fail_here(fmt::format("unexpected end of template, expected '{}'", *std::prev(ends.end())));
    }
    return body;
  }

  // The body of a block tag: `%}` ... `{% end`; the end name is taken.
  Body parse_body(Names ends, std::string* end_name = nullptr) {
    skip_operator(":");
    expect(Token::Kind::kBlockEnd, "'%}'");
    Body body = parse_until(ends);
    const Token end = take();
    if (end_name) *end_name = end.text;
    return body;
  }

  static std::unique_ptr<Stmt> statement(Stmt::Kind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  std::unique_ptr<Stmt> parse_statement() {
    NestingGuard guard(nesting_);
    const Token tag = expect(Token::Kind::kName, "a tag name");
    if (tag.text == "if") return parse_if(tag.line);
    if (tag.text == "for") return parse_for(tag.line);
    if (tag.text == "set") return parse_set(tag.line);
    if (tag.text == "macro") return parse_macro(tag.line);
    if (tag.text == "call") return parse_call_block(tag.line);
    if (tag.text == "filter") return parse_filter_block(tag.line);
    if (tag.text == "with") return parse_with(tag.line);
    if (tag.text == "break" || tag.text == "continue") return parse_jump(tag);
    if (tag.text == "generation") {  // marks what an assistant wrote, for training only
      auto stmt = statement(Stmt::Kind::kGroup, tag.line);
      stmt->body = parse_body({"endgeneration"});
      return stmt;
    }
    fail_at(tag.line, fmt::format("Encountered unknown tag '{}'", tag.text));
  }

  std::unique_ptr<Stmt> parse_if(int line) {
    auto stmt = statement(Stmt::Kind::kIf, line);
    std::string end = "if";
    while (end == "if" || end == "elif") {
      Stmt::Branch branch;
      branch.test = parse_tuple(false);
      branch.body = parse_body({"elif", "else", "endif"}, &end);
      stmt->branches.push_back(std::move(branch));
    }
    if (end == "else") stmt->branches.push_back({nullptr, parse_body({"endif"})});
    return stmt;
  }

  std::unique_ptr<Stmt> parse_for(int line) {
    auto stmt = statement(Stmt::Kind::kFor, line);
    stmt->target = parse_target("in");
    if (!skip_name("in")) fail_here("expected 'in'");
    stmt->value = parse_tuple(false, "recursive");
    if (skip_name("if")) stmt->test = parse_expression();
    stmt->recursive = skip_name("recursive");
    ++loops_;
    std::string end;
    stmt->body = parse_body({"endfor", "else"}, &end);
    --loops_;
    if (end == "else") stmt->otherwise = parse_body({"endfor"});
    return stmt;
  }

  std::unique_ptr<Stmt> parse_jump(const Token& tag) {
    if (loops_ == 0) fail_at(tag.line, fmt::format("'{}' outside loop", tag.text));
    return statement(tag.text == "break" ? Stmt::Kind::kBreak : Stmt::Kind::kContinue, tag.line);
  }

  // A name, ns.member, or several with commas between them (with or without parentheses).
  Target parse_target(std::string_view end_name) {
    Target first = parse_one_target();
    if (!current().is_operator(",")) return first;
    Target tuple;
    tuple.parts.push_back(std::move(first));
    while (skip_operator(",")) {
      if (current().is_operator("=") || current().is_operator(")") || current().is_name(end_name) ||
          current().kind == Token::Kind::kBlockEnd) {
        break;
      }
      tuple.parts.push_back(parse_one_target());
    }
    return tuple;
  }

  Target parse_one_target() {
    NestingGuard guard(nesting_);
    if (skip_operator("(")) {
      Target inner = parse_target(")");
      expect_operator(")");
      return inner;
    }
    Target target;
    const Token name = expect(Token::Kind::kName, "a name");
    static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                     "True", "False", "None"};
    for (std::string_view word : kReserved) {
      if (name.text == word) fail_at(name.line, fmt::format("can't assign to '{}'", word));
    }
    target.name = name.text;
    if (skip_operator(".")) target.member = expect(Token::Kind::kName, "a name").text;
    return target;
  }

  std::unique_ptr<Stmt> parse_set(int line) {
    Target target = parse_target("");
    if (skip_operator("=")) {
      auto stmt = statement(Stmt::Kind::kSet, line);
      stmt->target = std::move(target);
      stmt->value = parse_tuple(true);
      return stmt;
    }
    auto stmt = statement(Stmt::Kind::kSetBlock, line);
    stmt->target = std::move(target);
    stmt->value = parse_filters(nullptr, false);
    stmt->body = parse_body({"endset"});
    return stmt;
  }

  void parse_signature(MacroDefinition& macro) {
    expect_operator("(");
    while (!current().is_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      macro.parameters.push_back(expect(Token::Kind::kName, "a parameter").text);
      if (skip_operator("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        fail_here("non-default argument follows default argument");
      }
    }
    expect_operator(")");
  }

  void parse_macro_body(MacroDefinition& macro, std::string_view end) {
    const bool varargs = std::exchange(saw_varargs_, false);
    const bool kwargs = std::exchange(saw_kwargs_, false);
    const bool caller = std::exchange(saw_caller_, false);
    const int loops = std::exchange(loops_, 0);
    macro.body = parse_body({end});
    loops_ = loops;
    macro.uses_varargs = std::exchange(saw_varargs_, varargs);
    macro.uses_kwargs = std::exchange(saw_kwargs_, kwargs);
    macro.uses_caller = std::exchange(saw_caller_, caller);
  }

  std::unique_ptr<Stmt> parse_macro(int line) {
    auto stmt = statement(Stmt::Kind::kMacro, line);
    stmt->macro.name = expect(Token::Kind::kName, "a macro name").text;
    parse_signature(stmt->macro);
    parse_macro_body(stmt->macro, "endmacro");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_call_block(int line) {
    auto stmt = statement(Stmt::Kind::kCallBlock, line);
    stmt->macro.name = "caller";
    if (current().is_operator("(")) parse_signature(stmt->macro);
    stmt->value = parse_expression();
    if (stmt->value->kind != Expr::Kind::kCall) fail_at(line, "expected call");
    parse_macro_body(stmt->macro, "endcall");
    return stmt;
  }

  std::unique_ptr<Stmt> parse_filter_block(int line) {
    auto stmt = statement(Stmt::Kind::kFilterBlock, line);
    stmt->value = parse_filters(nullptr, true);
    stmt->body = parse_body({"endfilter"});
    return stmt;
  }

  std::unique_ptr<Stmt> parse_with(int line) {
    auto stmt = statement(Stmt::Kind::kWith, line);
    while (current().kind != Token::Kind::kBlockEnd) {
      if (!stmt->assignments.empty()) expect_operator(",");
      Target target = parse_one_target();
      expect_operator("=");
      stmt->assignments.emplace_back(std::move(target), parse_expression());
    }
    stmt->body = parse_body({"endwith"});
    return stmt;
  }

  int loops_ = 0;  // around the current place, inside the current macro
};

}  // namespace

Body parse_template(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    fail(TemplateError::Kind::kLimit, "the template is too large");
  }
  StatementParser parser(tokenize(source));
  try {
    return parser.parse();
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = parser.line();
    throw;
  }
}

}  // namespace winnow::text::jinja
