// Arithmetic, attributes and subscripts, as Python has them.
#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja_builtins.h"

namespace winnow::text::jinja {

namespace {

[[noreturn]] void overflow() { type_error("an integer is beyond 64 bits"); }

[[noreturn]] void unsupported(std::string_view op, const Value& left, const Value& right) {
  left.require_defined();
  right.require_defined();
  type_error("unsupported operand type(s) for {}: '{}' and '{}'", op, left.type_name(),
             right.type_name());
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) type_error("division by zero");
  if (b == -1) {
    int64_t result = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) overflow();
    return result;
  }
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) type_error("integer modulo by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) type_error("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value(exponent % 2 ? int64_t{-1} : int64_t{1});
  int64_t result = 1;
  for (; exponent > 0; --exponent) {  // at most 63 turns before it overflows
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  }
  return Value(result);
}

Value integer_operation(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &result)) overflow();
  } else if (op == "-" || op == "neg") {
    if (__builtin_sub_overflow(a, b, &result)) overflow();
  } else if (op == "*") {
    if (__builtin_mul_overflow(a, b, &result)) overflow();
  } else if (op == "//") {
    result = floor_divide(a, b);
  } else if (op == "%") {
    result = floor_modulo(a, b);
  } else if (op == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) type_error("division by zero");
    return Value(static_cast<double>(a) / static_cast<double>(b));
  }
  return Value(result);
}

Value float_operation(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "neg") return Value(-b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") {
    if (a == 0 && b < 0) type_error("0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b)) type_error("complex numbers are not supported");
    return Value(std::pow(a, b));
  }
  if (b == 0) type_error("float division by zero");
  if (op == "/") return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && ((rest < 0) != (b < 0))) rest += b;
  if (op == "%") return Value(rest == 0 ? std::copysign(0.0, b) : rest);
  return Value(std::floor((a - rest) / b + 0.5));
}

Value repeated(const Value& value, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (value.is_text()) {
    const MarkedText& text = value.as_text();
    MarkedText out;
    if (text.empty()) return out;
    check_text_size(text.size(), times);
    for (size_t i = 0; i < times; ++i) out.append(text);
    return out;
  }
  const List& list = value.as_list();
  if (times > 0 && list.weight > kMaxTextBytes / times) {
    fail(TemplateError::Kind::kLimit, "a list would grow too large");
  }
  std::vector<Value> items;
  for (size_t i = 0; i < times; ++i)
    items.insert(items.end(), list.items.begin(), list.items.end());
  return make_list(std::move(items), list.kind);
}

bool is_sequence(const Value& value) {
  return value.is_text() ||
         (value.is(Value::Kind::kList) && value.as_list().kind != List::Kind::kIterator);
}

}  // namespace

Value binary_operation(std::string_view op, const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return integer_operation(op, left.as_int(), right.as_int());
  }
  if (left.is_number() && right.is_number()) {
    return float_operation(op, left.as_float(), right.as_float());
  }
  if (op == "neg") {
    right.require_defined();
    type_error("bad operand type for unary -: '{}'", right.type_name());
  }
  if (op == "+" && left.is_text() && right.is_text()) {
    MarkedText out = left.as_text();
    out.append(right.as_text());
    return out;
  }
  if (op == "+" && left.is(Value::Kind::kList) && right.is(Value::Kind::kList) &&
      is_sequence(left) && left.as_list().kind == right.as_list().kind) {
    std::vector<Value> items = left.as_list().items;
    items.insert(items.end(), right.as_list().items.begin(), right.as_list().items.end());
    return make_list(std::move(items), left.as_list().kind);
  }
  if (op == "*" && is_sequence(left) && right.is_integral()) return repeated(left, right.as_int());
  if (op == "*" && left.is_integral() && is_sequence(right)) return repeated(right, left.as_int());
  if (op == "%" && left.is_text()) return percent_format(left.as_text(), right);
  unsupported(op, left, right);
}

MarkedText percent_format(const MarkedText& format, const Value& arguments) {
  const bool tuple =
      arguments.is(Value::Kind::kList) && arguments.as_list().kind == List::Kind::kTuple;
  std::vector<Value> values = tuple ? arguments.as_list().items : std::vector<Value>{arguments};
  MarkedText out;
  const std::string& text = format.str();
  size_t next = 0;
  size_t copied = 0;
  for (size_t at = 0; (at = text.find('%', at)) != std::string::npos;) {
    out.append(format, copied, at);
    const char type = at + 1 < text.size() ? text[at + 1] : '\0';
    copied = at + 2;
    at += 2;
    if (type == '%') {
      out.append("%", false);
      continue;
    }
    if (next >= values.size()) type_error("not enough arguments for format string");
    const Value& value = values[next++];
    if (type == 's') {
      append_text(out, value);
    } else if (type == 'r') {
      out.append(repr(value), value.is_text() && !value.as_text().plain_runs().empty());
    } else if ((type == 'd' || type == 'i') && value.is_integral()) {
      out.append(fmt::format("{}", value.as_int()), false);
    } else {
      type_error("unsupported format character '{}'", type);
    }
  }
  out.append(format, copied, text.size());
  const bool mapping = arguments.is(Value::Kind::kDict);
  if (next < values.size() && !mapping) {
    type_error("not all arguments converted during string formatting");
  }
  return out;
}

namespace {

Value loop_attribute(const LoopPtr& loop, std::string_view name) {
  const auto index0 = static_cast<int64_t>(loop->index0);
  const auto length = static_cast<int64_t>(loop->items.size());
  if (name == "index") return Value(index0 + 1);
  if (name == "index0") return Value(index0);
  if (name == "revindex") return Value(length - index0);
  if (name == "revindex0") return Value(length - index0 - 1);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(index0 + 1 == length);
  if (name == "length") return Value(length);
  if (name == "depth") return Value(int64_t{loop->depth0} + 1);
  if (name == "depth0") return Value(int64_t{loop->depth0});
  if (name == "previtem") {
    if (index0 == 0) return Value::undefined("there is no previous item");
    return loop->items[loop->index0 - 1];
  }
  if (name == "nextitem") {
    if (index0 + 1 >= length) return Value::undefined("there is no next item");
    return loop->items[loop->index0 + 1];
  }
  return Value::undefined(fmt::format("'LoopContext object' has no attribute '{}'", name));
}

Value bound(const Value& self, std::string_view name, Method method) {
  auto callable = std::make_shared<Callable>();
  callable->name = name;
  callable->depth = self.depth() + 1;
  callable->call = [self, method](Interpreter& interpreter, Arguments& arguments) {
    return method(interpreter, self, arguments);
  };
  return CallablePtr(std::move(callable));
}

const char* object_name(const Value& value) {
  return value.is(Value::Kind::kNone) ? "None" : value.type_name();
}

// Methods of Python's dict that change it: the sandbox lets nobody near them, so neither is a
// member of that name to be had with a dot.
bool is_forbidden_method(const Value& object, std::string_view name) {
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  return object.is(Value::Kind::kDict) &&
         std::find(std::begin(kDict), std::end(kDict), name) != std::end(kDict);
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name) {
  object.require_defined();
  if (is_forbidden_method(object, name)) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of 'dict' object is unsafe.", name));
  }
  if (Method method = find_method(object, name)) return bound(object, name, method);
  const Value* member = nullptr;
  if (object.is(Value::Kind::kDict)) member = object.as_dict().find(name);
  if (object.is(Value::Kind::kNamespace)) member = object.as_namespace().find(name);
  if (member) return *member;
  if (object.is(Value::Kind::kLoop)) return loop_attribute(object.as_loop(), name);
  return Value::undefined(
      fmt::format("'{} object' has no attribute '{}'", object_name(object), name));
}

Value get_item(const Value& object, const Value& key) {
  object.require_defined();
  if (object.is(Value::Kind::kDict) && !key.is_undefined()) {
    if (const Value* member = object.as_dict().find(key)) return *member;
  }
  if (key.is_integral() && (is_sequence(object))) {
    const int64_t size = length(object);
    int64_t index = key.as_int();
    if (index < 0) index += size;
    if (index < 0 || index >= size) {
      return Value::undefined(
          fmt::format("{} object has no element {}", object.type_name(), key.as_int()));
    }
    if (object.is(Value::Kind::kList)) return object.as_list().items[static_cast<size_t>(index)];
    return get_slice(object, Value(index), Value(index + 1), None{});
  }
  if (key.is_text()) {
    if (Method method = find_method(object, key.as_str())) {
      return bound(object, key.as_str(), method);
    }
    if (!object.is(Value::Kind::kDict)) return get_attribute(object, key.as_str());
  }
  return Value::undefined(fmt::format("'{} object' has no attribute {}", object_name(object),
                                      key.is_undefined() ? "Undefined" : repr(key)));
}

namespace {

int64_t slice_bound(
    const Value& bound, int64_t otherwise, int64_t low, int64_t high, int64_t size) {
  if (bound.is(Value::Kind::kNone)) return otherwise;
  int64_t index = bound.as_int();
  if (index < 0) index += size;
  return std::clamp(index, low, high);
}

// Byte offsets of the characters begin, begin + 1, ..., end (both clamped to the text).
MarkedText character_range(const MarkedText& text, int64_t begin, int64_t end) {
  int64_t count = 0;
  size_t at = 0;
  const std::string& bytes = text.str();
  while (count < begin && at < bytes.size()) {
    at += character_bytes(bytes, at);
    ++count;
  }
  const size_t from = at;
  while (count < end && at < bytes.size()) {
    at += character_bytes(bytes, at);
    ++count;
  }
  return text.substr(from, at);
}

}  // namespace

Value get_slice(const Value& object, const Value& begin, const Value& end, const Value& step) {
  object.require_defined();
  const std::array<const Value*, 3> bounds = {&begin, &end, &step};
  const bool fits = std::all_of(bounds.begin(), bounds.end(), [](const Value* bound) {
    return bound->is(Value::Kind::kNone) || bound->is_integral();
  });
  if (!fits || !is_sequence(object)) return Value::undefined("a slice that cannot be taken");
  const int64_t stride = step.is(Value::Kind::kNone) ? 1 : step.as_int();
  if (stride == 0) type_error("slice step cannot be zero");
  const int64_t size = length(object);
  const bool forward = stride > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const int64_t from = slice_bound(begin, forward ? low : high, low, high, size);
  const int64_t to = slice_bound(end, forward ? high : low, low, high, size);
  if (object.is_text() && stride == 1) {
    return character_range(object.as_text(), from, std::max(from, to));
  }
  const std::vector<Value> all = iterate(object);
  std::vector<Value> picked;
  // The distance is counted first: stepping by a huge stride would overflow.
  const uint64_t distance = forward ? (to > from ? static_cast<uint64_t>(to - from) : 0)
                                    : (from > to ? static_cast<uint64_t>(from - to) : 0);
  const uint64_t magnitude =
      forward ? static_cast<uint64_t>(stride) : uint64_t{0} - static_cast<uint64_t>(stride);
  for (uint64_t offset = 0; offset < distance; offset += magnitude) {
    const int64_t index =
        forward ? from + static_cast<int64_t>(offset) : from - static_cast<int64_t>(offset);
    picked.push_back(all[static_cast<size_t>(index)]);
    if (distance - offset <= magnitude) break;
  }
  if (object.is_text()) {
    MarkedText out;
    for (const Value& character : picked) out.append(character.as_text());
    return out;
  }
  return make_list(std::move(picked), object.as_list().kind);
}

}  // namespace winnow::text::jinja
