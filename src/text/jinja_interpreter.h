// Runs a syntax tree. One interpreter renders once.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"

namespace winnow::text::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

// A template comes with a checkpoint and its data with a request: neither is to be trusted with
// the time, memory or stack of the server.
struct RenderLimits {
  uint64_t max_steps = 5'000'000;  // expressions, loop turns, and 64 bytes of text moved
  int max_depth = 500;             // of expressions, statements and macro calls in each other
};

class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  const Value* find(std::string_view name) const;  // here and outwards
  void set(std::string_view name, Value value);    // here

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, Value>> variables_;
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  // now: what strftime_now() shows.
  Interpreter(const RenderLimits& limits, std::time_t now) : limits_(limits), now_(now) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  MarkedText render(const Body& body, const Variables& variables);

  // For filters, tests, methods and functions.
  void charge(uint64_t steps);                            // throws kLimit
  Value call(const Value& callee, Arguments& arguments);  // callee must outlive the call
  Value apply_filter(const std::string& name, const Value& input, Arguments& arguments);
  bool apply_test(const std::string& name, const Value& input, Arguments& arguments);
  Namespace* new_namespace() { return &namespaces_.emplace_back(); }
  std::time_t now() const { return now_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class DepthGuard;

  Flow execute(const Body& body, const ScopePtr& scope, MarkedText& out);
  Flow execute(const Stmt& stmt, const ScopePtr& scope, MarkedText& out);
  Flow execute_if(const Stmt& stmt, const ScopePtr& scope, MarkedText& out);
  Flow execute_captured(const Stmt& stmt, const ScopePtr& scope, MarkedText& out);
  Flow execute_with(const Stmt& stmt, const ScopePtr& scope, MarkedText& out);
  void execute_call_block(const Stmt& stmt, const ScopePtr& scope, MarkedText& out);
  void run_loop(const Stmt& stmt,
                std::vector<Value> items,
                const ScopePtr& scope,
                int depth0,
                MarkedText& out);
  std::vector<Value> filtered_items(const Stmt& stmt,
                                    std::vector<Value> items,
                                    const ScopePtr& scope);
  void assign(const Target& target, const Value& value, const ScopePtr& scope);
  Value make_macro(const MacroDefinition& macro, const ScopePtr& scope);
  Value call_macro(const MacroDefinition& macro, const ScopePtr& closure, Arguments& arguments);

  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Value evaluate_name(const Expr& expr, const ScopePtr& scope);
  Value evaluate_sequence(const Expr& expr, const ScopePtr& scope);
  Value evaluate_dict(const Expr& expr, const ScopePtr& scope);
  Value evaluate_item(const Expr& expr, const ScopePtr& scope);
  Value evaluate_call(const Expr& expr, const ScopePtr& scope, Arguments extra);
  Value evaluate_filter(const Expr& expr, const ScopePtr& scope, const Value* block_input);
  Value evaluate_binary(const Expr& expr, const ScopePtr& scope);
  Value evaluate_concat(const Expr& expr, const ScopePtr& scope);
  Value evaluate_compare(const Expr& expr, const ScopePtr& scope);
  Value evaluate_condition(const Expr& expr, const ScopePtr& scope);
  Arguments evaluate_arguments(const Expr& expr, const ScopePtr& scope);

  RenderLimits limits_;
  std::time_t now_;
  uint64_t steps_ = 0;
  int depth_ = 0;
  std::deque<Namespace> namespaces_;
};

}  // namespace winnow::text::jinja
