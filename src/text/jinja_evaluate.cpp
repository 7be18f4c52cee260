// Interpreter: expressions.
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"

namespace winnow::text::jinja {

namespace {
constexpr uint64_t kBytesPerStep = 64;
}

Value Interpreter::evaluate(const Expr& expr, const ScopePtr& scope) {
  charge(1);
  if (++depth_ > limits_.max_depth) {
    --depth_;
    fail(TemplateError::Kind::kLimit, "the template recurses too deeply");
  }
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  switch (expr.kind) {
    case Expr::Kind::kConst:
      return expr.constant;
    case Expr::Kind::kName:
      return evaluate_name(expr, scope);
    case Expr::Kind::kList:
    case Expr::Kind::kTuple:
      return evaluate_sequence(expr, scope);
    case Expr::Kind::kDict:
      return evaluate_dict(expr, scope);
    case Expr::Kind::kAttribute:
      return get_attribute(evaluate(*expr.children[0], scope), expr.name);
    case Expr::Kind::kItem:
      return evaluate_item(expr, scope);
    case Expr::Kind::kSlice:
      type_error("a slice stands outside of a subscript");
    case Expr::Kind::kCall:
      return evaluate_call(expr, scope, {});
    case Expr::Kind::kFilter:
      return evaluate_filter(expr, scope, nullptr);
    case Expr::Kind::kTest: {
      const Value input = evaluate(*expr.children[0], scope);
      Arguments arguments = evaluate_arguments(expr, scope);
      return Value(apply_test(expr.name, input, arguments));
    }
    case Expr::Kind::kNot:
      return Value(!evaluate(*expr.children[0], scope).truthy());
    case Expr::Kind::kNegate:
      return binary_operation("neg", Value(int64_t{0}), evaluate(*expr.children[0], scope));
    case Expr::Kind::kPlus:
      return binary_operation("+", Value(int64_t{0}), evaluate(*expr.children[0], scope));
    case Expr::Kind::kBinary:
      return evaluate_binary(expr, scope);
    case Expr::Kind::kConcat:
      return evaluate_concat(expr, scope);
    case Expr::Kind::kAnd: {
      Value left = evaluate(*expr.children[0], scope);
      return left.truthy() ? evaluate(*expr.children[1], scope) : left;
    }
    case Expr::Kind::kOr: {
      Value left = evaluate(*expr.children[0], scope);
      return left.truthy() ? left : evaluate(*expr.children[1], scope);
    }
    case Expr::Kind::kCompare:
      return evaluate_compare(expr, scope);
    case Expr::Kind::kCondition:
      return evaluate_condition(expr, scope);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expr& expr, const ScopePtr& scope) {
  if (const Value* value = scope->find(expr.name)) return *value;
  return Value::undefined(fmt::format("'{}' is undefined", expr.name));
}

Value Interpreter::evaluate_sequence(const Expr& expr, const ScopePtr& scope) {
  std::vector<Value> items;
  items.reserve(expr.children.size());
  for (const ExprPtr& child : expr.children) items.push_back(evaluate(*child, scope));
  return make_list(std::move(items),
                   expr.kind == Expr::Kind::kTuple ? List::Kind::kTuple : List::Kind::kList);
}

Value Interpreter::evaluate_dict(const Expr& expr, const ScopePtr& scope) {
  std::vector<std::pair<Value, Value>> items;
  for (size_t i = 0; i < expr.children.size(); i += 2) {
    Value key = evaluate(*expr.children[i], scope);
    items.emplace_back(std::move(key), evaluate(*expr.children[i + 1], scope));
  }
  return make_dict(std::move(items));
}

Value Interpreter::evaluate_item(const Expr& expr, const ScopePtr& scope) {
  const Value object = evaluate(*expr.children[0], scope);
  const Expr& key = *expr.children[1];
  if (key.kind != Expr::Kind::kSlice) return get_item(object, evaluate(key, scope));
  Value bounds[3] = {None{}, None{}, None{}};
  for (size_t i = 0; i < 3; ++i) {
    if (key.children[i]) bounds[i] = evaluate(*key.children[i], scope);
  }
  charge(object.is_text()                ? object.weight() / kBytesPerStep
         : object.is(Value::Kind::kList) ? object.as_list().items.size() / 8
                                         : 0);
  return get_slice(object, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(const Expr& expr, const ScopePtr& scope) {
  Arguments arguments;
  for (const ExprPtr& argument : expr.positional) {
    arguments.positional.push_back(evaluate(*argument, scope));
  }
  if (expr.star_positional) {
    for (Value& item : iterate(evaluate(*expr.star_positional, scope))) {
      arguments.positional.push_back(std::move(item));
    }
  }
  for (const auto& [name, argument] : expr.named) {
    arguments.named.emplace_back(name, evaluate(*argument, scope));
  }
  if (expr.star_named) {
    const Value rest = evaluate(*expr.star_named, scope);
    if (!rest.is(Value::Kind::kDict)) type_error("argument after ** must be a mapping");
    for (const auto& [name, value] : rest.as_dict().items) {
      if (!name.is_text()) type_error("keywords must be strings");
      arguments.named.emplace_back(name.as_str(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expr& expr, const ScopePtr& scope, Arguments extra) {
  const Expr& callee = *expr.children[0];
  if (callee.kind == Expr::Kind::kAttribute) {
    const Value self = evaluate(*callee.children[0], scope);
    if (Method method = find_method(self, callee.name)) {
      Arguments arguments = evaluate_arguments(expr, scope);
      uint64_t weight = self.weight();
      for (const Value& argument : arguments.positional) weight += argument.weight();
      charge(weight / kBytesPerStep);
      return method(*this, self, arguments);
    }
    const Value function = get_attribute(self, callee.name);
    Arguments arguments = evaluate_arguments(expr, scope);
    for (auto& item : extra.named) arguments.named.push_back(std::move(item));
    return call(function, arguments);
  }
  const Value function = evaluate(callee, scope);
  Arguments arguments = evaluate_arguments(expr, scope);
  for (auto& item : extra.named) arguments.named.push_back(std::move(item));
  return call(function, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  if (callee.is(Value::Kind::kCallable)) {
    return callee.as_callable()->call(*this, arguments);
  }
  if (callee.is(Value::Kind::kLoop)) {
    const LoopPtr& loop = callee.as_loop();
    if (!loop->recurse) {
      type_error("The loop must have the 'recursive' marker to be called recursively.");
    }
    return loop->recurse(*this, arguments);
  }
  callee.require_defined();
  type_error("'{}' object is not callable", callee.type_name());
}

Value Interpreter::apply_filter(const std::string& name, const Value& input, Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (!filter) type_error("No filter named '{}'", name);
  uint64_t weight = input.weight();
  for (const Value& argument : arguments.positional) weight += argument.weight();
  charge(weight / kBytesPerStep);
  return filter(*this, input, arguments);
}

bool Interpreter::apply_test(const std::string& name, const Value& input, Arguments& arguments) {
  const Test test = find_test(name);
  if (!test) type_error("No test named '{}'", name);
  uint64_t weight = 0;
  for (const Value& argument : arguments.positional) weight += argument.weight();
  charge(weight / kBytesPerStep);
  return test(*this, input, arguments);
}

Value Interpreter::evaluate_filter(const Expr& expr,
                                   const ScopePtr& scope,
                                   const Value* block_input) {
  Value input;
  if (!expr.children[0]) {
    input = *block_input;
  } else if (block_input) {
    input = evaluate_filter(*expr.children[0], scope, block_input);
  } else {
    input = evaluate(*expr.children[0], scope);
  }
  Arguments arguments = evaluate_arguments(expr, scope);
  return apply_filter(expr.name, input, arguments);
}

Value Interpreter::evaluate_binary(const Expr& expr, const ScopePtr& scope) {
  const Value left = evaluate(*expr.children[0], scope);
  const Value right = evaluate(*expr.children[1], scope);
  charge((left.weight() + right.weight()) / kBytesPerStep);
  Value result = binary_operation(expr.name, left, right);
  charge(result.weight() / kBytesPerStep);
  return result;
}

Value Interpreter::evaluate_concat(const Expr& expr, const ScopePtr& scope) {
  MarkedText out;
  for (const ExprPtr& child : expr.children) append_text(out, evaluate(*child, scope));
  charge(out.size() / kBytesPerStep);
  return out;
}

Value Interpreter::evaluate_compare(const Expr& expr, const ScopePtr& scope) {
  Value left = evaluate(*expr.children[0], scope);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.children[i + 1], scope);
    const std::string& op = expr.operators[i];
    charge((left.weight() + right.weight()) / kBytesPerStep);
    bool holds = false;
    if (op == "==") {
      holds = equal(left, right);
    } else if (op == "!=") {
      holds = !equal(left, right);
    } else if (op == "in") {
      holds = contains(right, left);
    } else if (op == "not in") {
      holds = !contains(right, left);
    } else {
      const int order = compare(left, right, op);
      holds = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluate_condition(const Expr& expr, const ScopePtr& scope) {
  if (evaluate(*expr.children[1], scope).truthy()) return evaluate(*expr.children[0], scope);
  if (expr.children[2]) return evaluate(*expr.children[2], scope);
  return Value::undefined("the inline if-expression evaluated to false and no else was given");
}

}  // namespace winnow::text::jinja
