#include "text/jinja_template.h"

#include <algorithm>

#include "text/jinja_parser.h"

namespace winnow::text::jinja {

namespace {

bool is_named(const Expr& expr, std::string_view name) {
  if (expr.kind == Expr::Kind::kName || expr.kind == Expr::Kind::kAttribute) {
    return expr.name == name;
  }
  if (expr.kind != Expr::Kind::kItem) return false;
  const Expr& key = *expr.children[1];
  return key.kind == Expr::Kind::kConst && key.constant.is_text() && key.constant.as_str() == name;
}

bool body_loops_over(const Body& body, std::string_view name) {
  return std::any_of(body.begin(), body.end(), [&](const auto& stmt) {
    if (stmt->kind == Stmt::Kind::kFor && is_named(*stmt->value, name)) return true;
    const bool in_branch =
        std::any_of(stmt->branches.begin(), stmt->branches.end(),
                    [&](const auto& branch) { return body_loops_over(branch.body, name); });
    return in_branch || body_loops_over(stmt->body, name) ||
           body_loops_over(stmt->otherwise, name) || body_loops_over(stmt->macro.body, name);
  });
}

}  // namespace

Template::Template(std::string_view source) : body_(parse_template(source)) {}

MarkedText Template::render(const Variables& variables,
                            std::time_t now,
                            const RenderLimits& limits) const {
  return Interpreter(limits, now).render(body_, variables);
}

bool Template::loops_over(std::string_view name) const { return body_loops_over(body_, name); }

}  // namespace winnow::text::jinja
