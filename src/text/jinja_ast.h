// The syntax tree of a template. One struct each for expressions and statements: which fields
// mean something depends on the kind, as noted.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace winnow::text::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Expr {
  enum class Kind {
    kConst,      // constant
    kName,       // name
    kList,       // children
    kTuple,      // children
    kDict,       // children: key, value, key, value
    kAttribute,  // children[0].name
    kItem,       // children[0][children[1]]
    kSlice,      // children: begin, end, step, each may be null; only as children[1] of kItem
    kCall,       // children[0](arguments)
    kFilter,     // children[0] | name(arguments); children[0] null in a filter block
    kTest,       // children[0] is name(arguments)
    kNot,
    kNegate,
    kPlus,    // children[0]
    kBinary,  // children[0] name children[1]; name: + - * / // % **
    kConcat,  // children joined by ~
    kAnd,
    kOr,         // children[0], children[1]
    kCompare,    // children[0] operators[0] children[1] operators[1] children[2] ...
    kCondition,  // children: value, test, otherwise (may be null)
  };
  Kind kind = Kind::kConst;
  int line = 0;
  int depth = 1;  // of nesting below, for the parser's bound
  std::string name;
  Value constant;
  std::vector<ExprPtr> children;
  std::vector<std::string> operators;
  // Arguments of kCall, kFilter and kTest.
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star_positional;
  ExprPtr star_named;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<const Stmt>>;

// What is assigned to: a name, a namespace member, or a tuple of targets.
struct Target {
  std::string name;
  std::string member;         // "x" in ns.x
  std::vector<Target> parts;  // not empty: a tuple
};

struct MacroDefinition {
  std::string name;  // "caller" for the body of a call block
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Stmt {
  enum class Kind {
    kText,         // text
    kOutput,       // value
    kIf,           // branches; the last may have no test
    kFor,          // target, value, test (may be null), body, otherwise, recursive
    kSet,          // target, value
    kSetBlock,     // target, value (a filter chain or null), body
    kMacro,        // macro
    kCallBlock,    // value (a kCall), macro
    kFilterBlock,  // value (a filter chain), body
    kWith,         // assignments, body
    kGroup,        // body, in the scope around it
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr test;
    Body body;
  };

  Kind kind = Kind::kText;
  int line = 0;
  std::string text;
  Target target;
  ExprPtr value;
  ExprPtr test;
  Body body;
  Body otherwise;
  bool recursive = false;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExprPtr>> assignments;
  MacroDefinition macro;
};

}  // namespace winnow::text::jinja
