// Values of the template language: Python's, as far as chat templates can tell the difference.
// Lists and dicts never change after they are made (chat templates run in Jinja's immutable
// sandbox), so values share freely and cannot form cycles. A namespace can change: it belongs to
// the render and is only pointed to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja_text.h"

namespace winnow::text::jinja {

// Thrown inside the engine, turned into a Status or an Error where it is entered.
class TemplateError : public std::runtime_error {
 public:
  enum class Kind {
    kSyntax,
    kType,    // an operation does not fit its operands
    kRaised,  // raise_exception
    kLimit,   // too deep, too large, too long
  };
  TemplateError(Kind kind, const std::string& message) : std::runtime_error(message), kind(kind) {}
  Kind kind;
  int line = 0;  // 1-based; 0 until the statement adds it
};

[[noreturn]] void fail(TemplateError::Kind kind, const std::string& message);
template <typename... Args>
[[noreturn]] void type_error(fmt::format_string<Args...> format, Args&&... args) {
  fail(TemplateError::Kind::kType, fmt::format(format, std::forward<Args>(args)...));
}

struct List;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;
class Interpreter;
class Value;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;
using CallablePtr = std::shared_ptr<const Callable>;
using LoopPtr = std::shared_ptr<Loop>;

struct Undefined {
  std::shared_ptr<const std::string> what;  // "'x' is undefined"
};
struct None {};

class Value {
 public:
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kDict,
    kNamespace,
    kCallable,
    kLoop
  };

  // Defined in jinja_value.cpp: every file of the language would spend a good part of its compile
  // time on what the compiler makes of the variant.
  Value() noexcept;
  Value(None v) noexcept;       // NOLINT(google-explicit-constructor)
  Value(Undefined v) noexcept;  // NOLINT(google-explicit-constructor)
  explicit Value(bool v) noexcept;
  explicit Value(int64_t v) noexcept;
  explicit Value(double v) noexcept;
  Value(MarkedText v);            // NOLINT(google-explicit-constructor)
  Value(ListPtr v) noexcept;      // NOLINT(google-explicit-constructor)
  Value(DictPtr v) noexcept;      // NOLINT(google-explicit-constructor)
  Value(Namespace* v) noexcept;   // NOLINT(google-explicit-constructor)
  Value(CallablePtr v) noexcept;  // NOLINT(google-explicit-constructor)
  Value(LoopPtr v) noexcept;      // NOLINT(google-explicit-constructor)
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  static Value text(std::string_view text, bool plain = false) {
    return Value(MarkedText(text, plain));
  }
  static Value undefined(std::string what);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind k) const { return kind() == k; }
  bool is_text() const { return is(Kind::kText); }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_number() const { return is(Kind::kBool) || is(Kind::kInt) || is(Kind::kFloat); }
  bool is_integral() const { return is(Kind::kBool) || is(Kind::kInt); }

  // The caller has asked for the kind before.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is(Kind::kBool) ? as_bool() : std::get<int64_t>(data_); }
  double as_float() const {
    return is_integral() ? static_cast<double>(as_int()) : std::get<double>(data_);
  }
  const MarkedText& as_text() const { return *std::get<TextPtr>(data_); }
  const std::string& as_str() const { return as_text().str(); }
  const List& as_list() const { return *std::get<ListPtr>(data_); }
  const Dict& as_dict() const { return *std::get<DictPtr>(data_); }
  Namespace& as_namespace() const { return *std::get<Namespace*>(data_); }
  const CallablePtr& as_callable() const { return std::get<CallablePtr>(data_); }
  const LoopPtr& as_loop() const { return std::get<LoopPtr>(data_); }

  bool truthy() const;
  const char* type_name() const;  // Python's: "str", "dict", "NoneType"
  // Throws kType "'x' is undefined" for an undefined value.
  void require_defined() const;
  const std::string& undefined_message() const;
  int depth() const;        // of nesting: 0 for scalars
  uint64_t weight() const;  // bytes and items when written out, shared parts counted each time

 private:
  std::variant<Undefined,
               None,
               bool,
               int64_t,
               double,
               TextPtr,
               ListPtr,
               DictPtr,
               Namespace*,
               CallablePtr,
               LoopPtr>
      data_;
};

struct List {
  enum class Kind { kList, kTuple, kIterator };  // an iterator has no length and is always true
  std::vector<Value> items;
  Kind kind = Kind::kList;
  bool plain = false;  // came with the request: its punctuation is content as well
  int depth = 1;
  uint64_t weight = 1;
};
// Throws kLimit for what is nested or shared beyond measure; so does make_dict.
Value make_list(std::vector<Value> items, List::Kind kind = List::Kind::kList, bool plain = false);

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion, keys distinct
  bool plain = false;
  int depth = 1;
  uint64_t weight = 1;
  std::unordered_map<std::string, size_t> index;  // only of large dicts

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
};
// Writes a key of a dict so that equal keys give equal strings: 1, 1.0 and True are one key, as in
// Python. Throws kType for what has no hash.
void append_key(std::string& out, const Value& key);
// Later items win over earlier ones with the same key. Throws kType for a key without a hash.
Value make_dict(std::vector<std::pair<Value, Value>>&& items, bool plain = false);

struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(Interpreter&, Arguments&)> call;
  int depth = 1;
};

// What the name `loop` stands for.
struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
  int depth0 = 0;
  std::vector<Value> last_changed;
  bool changed_before = false;
  std::function<Value(Interpreter&, Arguments&)> recurse;  // empty unless `recursive`
};

// plain: strings, and the punctuation around them when printed, are somebody's content.
Value from_json(const json::Value& value, bool plain);

bool equal(const Value& a, const Value& b);
// Python's ordering: negative, 0 or positive. Throws kType where Python has none.
int compare(const Value& a, const Value& b, std::string_view operator_name);
bool contains(const Value& container, const Value& item);

// str(value), for output and string operations.
MarkedText to_text(const Value& value);
void append_text(MarkedText& out, const Value& value);
std::string repr(const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::string indent;  // "" with has_indent false: one line
  bool has_indent = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// json.dumps(value). Throws kType for what JSON cannot hold.
MarkedText to_json(const Value& value, const JsonStyle& style);

// The items of a for loop over this value. Throws kType when there are none to have.
std::vector<Value> iterate(const Value& value);
// len(value); throws kType where Python does.
int64_t length(const Value& value);

}  // namespace winnow::text::jinja
