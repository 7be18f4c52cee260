// JSON as an insertion-ordered value: chat templates must print a client's keys in the client's
// order. Parsing is simdjson's; it refuses bad UTF-8, NaN literals and integers beyond 64 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace winnow::json {

class Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
using Object = std::vector<Member>;  // in document order, keys distinct

class Value {
 public:
  // Defined in json.cpp: what the compiler would make of the variant costs every file that includes
  // this a good part of its compile time.
  Value() noexcept;
  Value(std::nullptr_t) noexcept;  // NOLINT(google-explicit-constructor)
  Value(bool v) noexcept;          // NOLINT(google-explicit-constructor)
  Value(int v) noexcept;           // NOLINT(google-explicit-constructor)
  Value(int64_t v) noexcept;       // NOLINT(google-explicit-constructor)
  Value(uint64_t v) noexcept;      // NOLINT(google-explicit-constructor)
  Value(double v) noexcept;        // NOLINT(google-explicit-constructor)
  Value(const char* v);            // NOLINT(google-explicit-constructor)
  Value(std::string v) noexcept;   // NOLINT(google-explicit-constructor)
  Value(std::string_view v);       // NOLINT(google-explicit-constructor)
  Value(Array v) noexcept;         // NOLINT(google-explicit-constructor)
  Value(Object v) noexcept;        // NOLINT(google-explicit-constructor)
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(data_); }
  bool is_double() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_integer() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<Array>(data_); }
  bool is_object() const { return std::holds_alternative<Object>(data_); }
  // "null", "boolean", "integer", "number", "string", "array", "object": for messages.
  const char* kind_name() const;

  // The caller has asked is_x() before: the wrong kind is a programmer's error.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_integer() const { return std::get<int64_t>(data_); }
  double as_number() const {
    return is_integer() ? static_cast<double>(as_integer()) : std::get<double>(data_);
  }
  const std::string& as_string() const { return std::get<std::string>(data_); }
  const Array& as_array() const { return std::get<Array>(data_); }
  Array& as_array() { return std::get<Array>(data_); }
  const Object& as_object() const { return std::get<Object>(data_); }
  Object& as_object() { return std::get<Object>(data_); }

  // The member's value; nullptr when this is no object or has no such key.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  // Replaces or appends a member. This must be an object.
  void set(std::string_view key, Value value);

  bool operator==(const Value& other) const;

 private:
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> data_;
};

struct ParseLimits {
  size_t max_depth = 512;
  bool reject_duplicate_keys = true;
};

// Status kInvalidArgument says what is wrong; for a duplicate key, which.
Result<Value> parse(std::string_view text, const ParseLimits& limits = {});

enum class Style {
  kCompact,  // {"a":1,"b":[1,2]}
  kPython,   // {"a": 1, "b": [1, 2]}: json.dumps(ensure_ascii=False)
};
// Doubles in their shortest exact form, with ".0" where the value is whole (as Python prints
// them); NaN and infinities as null.
std::string dump(const Value& value, Style style = Style::kCompact);
void dump_to(std::string& out, const Value& value, Style style);
// Appends text as a JSON string, quotes included. Non-ASCII stays as it is.
void append_string(std::string& out, std::string_view text);
// Appends a double by dump's rule.
void append_double(std::string& out, double value);

}  // namespace winnow::json
