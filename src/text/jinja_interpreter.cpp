#include "text/jinja_interpreter.h"

#include <algorithm>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
    for (const auto& [key, value] : scope->variables_) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  variables_.emplace_back(std::string(name), std::move(value));
}

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter_.depth_ > interpreter_.limits_.max_depth) {
      --interpreter_.depth_;
      fail(TemplateError::Kind::kLimit, "the template recurses too deeply");
    }
  }
  ~DepthGuard() { --interpreter_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Interpreter& interpreter_;
};

void Interpreter::charge(uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.max_steps) {
    fail(TemplateError::Kind::kLimit,
         fmt::format("rendering takes more than {} steps", limits_.max_steps));
  }
}

MarkedText Interpreter::render(const Body& body, const Variables& variables) {
  auto globals = std::make_shared<Scope>(nullptr);
  for (auto& [name, value] : global_functions()) globals->set(name, value);
  auto root = std::make_shared<Scope>(globals);
  for (const auto& [name, value] : variables) root->set(name, value);
  MarkedText out;
  execute(body, root, out);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope, MarkedText& out) {
  for (const auto& stmt : body) {
    charge(1);
    try {
      const Flow flow = execute(*stmt, scope, out);
      if (flow != Flow::kNext) return flow;
    } catch (TemplateError& error) {
      if (error.line == 0) error.line = stmt->line;
      throw;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt, const ScopePtr& scope, MarkedText& out) {
  DepthGuard guard(*this);
  switch (stmt.kind) {
    case Stmt::Kind::kText:
      charge(stmt.text.size() / 64);
      out.append(stmt.text, false);
      break;
    case Stmt::Kind::kOutput: {
      const Value value = evaluate(*stmt.value, scope);
      charge(value.weight() / 64);
      append_text(out, value);
      break;
    }
    case Stmt::Kind::kIf:
      return execute_if(stmt, scope, out);
    case Stmt::Kind::kFor:
      run_loop(stmt, iterate(evaluate(*stmt.value, scope)), scope, 0, out);
      break;
    case Stmt::Kind::kSet:
      assign(stmt.target, evaluate(*stmt.value, scope), scope);
      break;
    case Stmt::Kind::kSetBlock:
    case Stmt::Kind::kFilterBlock:
      return execute_captured(stmt, scope, out);
    case Stmt::Kind::kMacro:
      scope->set(stmt.macro.name, make_macro(stmt.macro, scope));
      break;
    case Stmt::Kind::kCallBlock:
      execute_call_block(stmt, scope, out);
      break;
    case Stmt::Kind::kWith:
      return execute_with(stmt, scope, out);
    case Stmt::Kind::kGroup:
      return execute(stmt.body, scope, out);
    case Stmt::Kind::kBreak:
      return Flow::kBreak;
    case Stmt::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(const Stmt& stmt,
                                          const ScopePtr& scope,
                                          MarkedText& out) {
  for (const Stmt::Branch& branch : stmt.branches) {
    if (!branch.test || evaluate(*branch.test, scope).truthy()) {
      return execute(branch.body, scope, out);
    }
  }
  return Flow::kNext;
}

// {% set x %}...{% endset %} and {% filter f %}...{% endfilter %}
Interpreter::Flow Interpreter::execute_captured(const Stmt& stmt,
                                                const ScopePtr& scope,
                                                MarkedText& out) {
  MarkedText text;
  const Flow flow = execute(stmt.body, std::make_shared<Scope>(scope), text);
  if (flow != Flow::kNext) return flow;
  Value value(std::move(text));
  if (stmt.value) value = evaluate_filter(*stmt.value, scope, &value);
  if (stmt.kind == Stmt::Kind::kSetBlock) {
    assign(stmt.target, value, scope);
  } else {
    append_text(out, value);
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_with(const Stmt& stmt,
                                            const ScopePtr& scope,
                                            MarkedText& out) {
  auto inner = std::make_shared<Scope>(scope);
  for (const auto& [target, value] : stmt.assignments) {
    assign(target, evaluate(*value, scope), inner);
  }
  return execute(stmt.body, inner, out);
}

void Interpreter::execute_call_block(const Stmt& stmt, const ScopePtr& scope, MarkedText& out) {
  Arguments extra;
  extra.named.emplace_back("caller", make_macro(stmt.macro, scope));
  const Value value = evaluate_call(*stmt.value, scope, std::move(extra));
  charge(value.weight() / 64);
  append_text(out, value);
}

std::vector<Value> Interpreter::filtered_items(const Stmt& stmt,
                                               std::vector<Value> items,
                                               const ScopePtr& scope) {
  if (!stmt.test) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    auto inner = std::make_shared<Scope>(scope);
    assign(stmt.target, item, inner);
    if (evaluate(*stmt.test, inner).truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

void Interpreter::run_loop(const Stmt& stmt,
                           std::vector<Value> items,
                           const ScopePtr& scope,
                           int depth0,
                           MarkedText& out) {
  DepthGuard guard(*this);
  charge(items.size() / 8);
  auto loop = std::make_shared<Loop>();
  loop->items = filtered_items(stmt, std::move(items), scope);
  loop->depth0 = depth0;
  if (stmt.recursive) {
    std::weak_ptr<Scope> outer = scope;
    loop->recurse = [&stmt, outer, depth0](Interpreter& self, Arguments& arguments) -> Value {
      Parameters parameters("loop", arguments, {"iterable"});
      auto outer_scope = outer.lock();
      if (!outer_scope) type_error("loop called after its end");
      MarkedText text;
      self.run_loop(stmt, iterate(parameters.required(0)), outer_scope, depth0 + 1, text);
      return text;
    };
  }
  if (loop->items.empty()) {
    execute(stmt.otherwise, std::make_shared<Scope>(scope), out);
    return;
  }
  for (size_t i = 0; i < loop->items.size(); ++i) {
    charge(1);
    loop->index0 = i;
    auto inner = std::make_shared<Scope>(scope);
    inner->set("loop", loop);
    assign(stmt.target, loop->items[i], inner);
    if (execute(stmt.body, inner, out) == Flow::kBreak) break;
  }
}

void Interpreter::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  if (!target.parts.empty()) {
    const std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size()) {
      type_error("cannot unpack {} values into {}", items.size(), target.parts.size());
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
    return;
  }
  if (target.member.empty()) {
    scope->set(target.name, value);
    return;
  }
  const Value* object = scope->find(target.name);
  if (!object || !object->is(Value::Kind::kNamespace)) {
    type_error("cannot assign attribute on non-namespace object '{}'", target.name);
  }
  object->as_namespace().set(target.member, value);
}

Value Interpreter::make_macro(const MacroDefinition& macro, const ScopePtr& scope) {
  auto callable = std::make_shared<Callable>();
  callable->name = macro.name;
  // Weak: the scope holds the macro. It is gone only when a namespace carried the macro out of it.
  std::weak_ptr<Scope> closure = scope;
  callable->call = [&macro, closure](Interpreter& self, Arguments& arguments) {
    auto outer = closure.lock();
    if (!outer) type_error("macro '{}' called outside the scope that defined it", macro.name);
    return self.call_macro(macro, outer, arguments);
  };
  return CallablePtr(std::move(callable));
}

Value Interpreter::call_macro(const MacroDefinition& macro,
                              const ScopePtr& closure,
                              Arguments& arguments) {
  DepthGuard guard(*this);
  auto scope = std::make_shared<Scope>(closure);
  auto take_named = [&](const std::string& name, Value& into) {
    auto at = std::find_if(arguments.named.begin(), arguments.named.end(),
                           [&](const auto& item) { return item.first == name; });
    if (at == arguments.named.end()) return false;
    into = std::move(at->second);
    arguments.named.erase(at);
    return true;
  };
  const size_t count = macro.parameters.size();
  bool has_caller_parameter = false;
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    has_caller_parameter |= name == "caller";
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (!take_named(name, value)) {
      const size_t first_default = count - macro.defaults.size();
      value = i >= first_default
                  ? evaluate(*macro.defaults[i - first_default], scope)
                  : Value::undefined(fmt::format("parameter '{}' was not provided", name));
    }
    scope->set(name, std::move(value));
  }
  if (macro.uses_caller && !has_caller_parameter) {
    Value caller = Value::undefined("No caller defined");
    take_named("caller", caller);
    scope->set("caller", std::move(caller));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> rest;
    for (auto& [name, value] : arguments.named) rest.emplace_back(Value::text(name), value);
    scope->set("kwargs", make_dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    type_error("macro '{}' takes no keyword argument '{}'", macro.name, arguments.named[0].first);
  }
  std::vector<Value> rest;
  if (arguments.positional.size() > count) {
    if (!macro.uses_varargs) {
      type_error("macro '{}' takes not more than {} argument(s)", macro.name, count);
    }
    rest.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(count),
                arguments.positional.end());
  }
  if (macro.uses_varargs) scope->set("varargs", make_list(std::move(rest), List::Kind::kTuple));
  MarkedText out;
  execute(macro.body, scope, out);
  return out;
}

}  // namespace winnow::text::jinja
