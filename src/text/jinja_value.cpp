#include "text/jinja_value.h"

#include <algorithm>
#include <cmath>

namespace winnow::text::jinja {

namespace {

constexpr int kMaxValueDepth = 600;  // JSON of a client goes to 512
constexpr uint64_t kMaxWeight = kMaxTextBytes;
constexpr uint64_t kItemWeight = 16;  // as much work as so many bytes of text
constexpr size_t kIndexedDictSize = 17;

void check_extent(int depth, uint64_t weight) {
  if (depth > kMaxValueDepth) fail(TemplateError::Kind::kLimit, "a value is nested too deeply");
  if (weight > kMaxWeight) fail(TemplateError::Kind::kLimit, "a value is too large");
}

std::string key_string(const Value& key) {
  std::string out;
  append_key(out, key);
  return out;
}

std::string text_key(std::string_view key) {
  std::string out(1, 's');
  out += key;
  return out;
}

}  // namespace

void append_key(std::string& out, const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kText:
      out.push_back('s');
      out += key.as_str();
      return;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      out += fmt::format("i{}", key.as_int());
      return;
    case Value::Kind::kFloat: {
      const double v = key.as_float();
      if (v == std::floor(v) && std::fabs(v) < 9e18) {
        out += fmt::format("i{}", static_cast<int64_t>(v));
      } else {
        out += fmt::format("f{}", v);
      }
      return;
    }
    case Value::Kind::kNone:
      out.push_back('n');
      return;
    case Value::Kind::kList:
      if (key.as_list().kind == List::Kind::kTuple) {
        out.push_back('t');
        for (const Value& item : key.as_list().items) {
          std::string part;
          append_key(part, item);
          out += fmt::format("{}:{}", part.size(), part);
        }
        return;
      }
      [[fallthrough]];
    default:
      type_error("unhashable type: '{}'", key.type_name());
  }
}

void fail(TemplateError::Kind kind, const std::string& message) {
  throw TemplateError(kind, message);
}

Value::Value() noexcept : data_(Undefined{}) {}
Value::Value(None v) noexcept : data_(v) {}
Value::Value(Undefined v) noexcept : data_(std::move(v)) {}
Value::Value(bool v) noexcept : data_(v) {}
Value::Value(int64_t v) noexcept : data_(v) {}
Value::Value(double v) noexcept : data_(v) {}
Value::Value(MarkedText v) : data_(std::make_shared<const MarkedText>(std::move(v))) {}
Value::Value(ListPtr v) noexcept : data_(std::move(v)) {}
Value::Value(DictPtr v) noexcept : data_(std::move(v)) {}
Value::Value(Namespace* v) noexcept : data_(v) {}
Value::Value(CallablePtr v) noexcept : data_(std::move(v)) {}
Value::Value(LoopPtr v) noexcept : data_(std::move(v)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Value Value::undefined(std::string what) {
  return Undefined{std::make_shared<const std::string>(std::move(what))};
}

bool Value::truthy() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return as_int() != 0;
    case Kind::kFloat:
      return as_float() != 0;
    case Kind::kText:
      return !as_text().empty();
    case Kind::kList:
      return as_list().kind == List::Kind::kIterator || !as_list().items.empty();
    case Kind::kDict:
      return !as_dict().items.empty();
    case Kind::kNamespace:
    case Kind::kCallable:
    case Kind::kLoop:
      return true;
  }
  return false;
}

const char* Value::type_name() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "str";
    case Kind::kList:
      return as_list().kind == List::Kind::kTuple      ? "tuple"
             : as_list().kind == List::Kind::kIterator ? "generator"
                                                       : "list";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kCallable:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
  }
  return "";
}

const std::string& Value::undefined_message() const {
  static const std::string kUnknown = "value is undefined";
  const auto& what = std::get<Undefined>(data_).what;
  return what ? *what : kUnknown;
}

void Value::require_defined() const {
  if (is_undefined()) fail(TemplateError::Kind::kType, undefined_message());
}

int Value::depth() const {
  switch (kind()) {
    case Kind::kList:
      return as_list().depth;
    case Kind::kDict:
      return as_dict().depth;
    case Kind::kCallable:
      return as_callable()->depth;
    default:
      return 0;
  }
}

uint64_t Value::weight() const {
  switch (kind()) {
    case Kind::kText:
      return as_text().size() + kItemWeight;
    case Kind::kList:
      return as_list().weight;
    case Kind::kDict:
      return as_dict().weight;
    default:
      return kItemWeight;
  }
}

Value make_list(std::vector<Value> items, List::Kind kind, bool plain) {
  auto list = std::make_shared<List>();
  int depth = 0;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
    list->weight += item.weight();
  }
  list->depth = depth + 1;
  list->items = std::move(items);
  list->kind = kind;
  list->plain = plain;
  check_extent(list->depth, list->weight);
  return ListPtr(std::move(list));
}

Value make_dict(std::vector<std::pair<Value, Value>>&& items, bool plain) {
  auto dict = std::make_shared<Dict>();
  dict->plain = plain;
  if (items.size() < kIndexedDictSize) {
    for (auto& [key, value] : items) {
      const std::string wanted = key_string(key);
      auto same = std::find_if(dict->items.begin(), dict->items.end(),
                               [&](const auto& old) { return key_string(old.first) == wanted; });
      if (same == dict->items.end()) {
        dict->items.emplace_back(std::move(key), std::move(value));
      } else {
        same->second = std::move(value);
      }
    }
  } else {
    for (auto& [key, value] : items) {
      auto [at, added] = dict->index.try_emplace(key_string(key), dict->items.size());
      if (added) {
        dict->items.emplace_back(std::move(key), std::move(value));
      } else {
        dict->items[at->second].second = std::move(value);
      }
    }
  }
  int depth = 0;
  for (const auto& [key, value] : dict->items) {
    depth = std::max({depth, key.depth(), value.depth()});
    dict->weight += key.weight() + value.weight();
  }
  dict->depth = depth + 1;
  check_extent(dict->depth, dict->weight);
  return DictPtr(std::move(dict));
}

const Value* Dict::find(std::string_view key) const {
  if (!index.empty()) {
    auto at = index.find(text_key(key));
    return at == index.end() ? nullptr : &items[at->second].second;
  }
  for (const auto& [name, value] : items) {
    if (name.is_text() && name.as_str() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) return find(std::string_view(key.as_str()));
  const std::string wanted = key_string(key);
  if (!index.empty()) {
    auto at = index.find(wanted);
    return at == index.end() ? nullptr : &items[at->second].second;
  }
  for (const auto& [name, value] : items) {
    if (!name.is_text() && key_string(name) == wanted) return &value;
  }
  return nullptr;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : members) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  members.emplace_back(std::string(name), std::move(value));
}

Value from_json(const json::Value& value, bool plain) {
  if (value.is_null()) return None{};
  if (value.is_bool()) return Value(value.as_bool());
  if (value.is_integer()) return Value(value.as_integer());
  if (value.is_double()) return Value(value.as_number());
  if (value.is_string()) return Value::text(value.as_string(), plain);
  if (value.is_array()) {
    std::vector<Value> items;
    items.reserve(value.as_array().size());
    for (const json::Value& item : value.as_array()) items.push_back(from_json(item, plain));
    return make_list(std::move(items), List::Kind::kList, plain);
  }
  std::vector<std::pair<Value, Value>> items;
  items.reserve(value.as_object().size());
  for (const auto& [key, item] : value.as_object()) {
    items.emplace_back(Value::text(key, plain), from_json(item, plain));
  }
  return make_dict(std::move(items), plain);
}

namespace {

bool equal_lists(const List& a, const List& b) {
  if (&a == &b) return true;
  return a.kind == b.kind && a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other && equal(item.second, *other);
  });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  if (a.is_number() && b.is_number()) return a.as_float() == b.as_float();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kText:
      return a.as_str() == b.as_str();
    case Value::Kind::kList:
      return equal_lists(a.as_list(), b.as_list());
    case Value::Kind::kDict:
      return equal_dicts(a.as_dict(), b.as_dict());
    case Value::Kind::kNamespace:
      return &a.as_namespace() == &b.as_namespace();
    case Value::Kind::kCallable:
      return a.as_callable() == b.as_callable();
    case Value::Kind::kLoop:
      return a.as_loop() == b.as_loop();
    default:
      return false;  // numbers were handled
  }
}

int compare(const Value& a, const Value& b, std::string_view operator_name) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) {
      return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
    }
    return a.as_float() < b.as_float() ? -1 : a.as_float() > b.as_float();
  }
  if (a.is_text() && b.is_text()) return a.as_str().compare(b.as_str());  // UTF-8 keeps the order
  if (a.is(Value::Kind::kList) && b.is(Value::Kind::kList) &&
      a.as_list().kind == b.as_list().kind) {
    const auto& x = a.as_list().items;
    const auto& y = b.as_list().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i])) return compare(x[i], y[i], operator_name);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  a.require_defined();
  b.require_defined();
  type_error("'{}' not supported between instances of '{}' and '{}'", operator_name, a.type_name(),
             b.type_name());
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Value::Kind::kUndefined:
      return false;
    case Value::Kind::kText:
      if (!item.is_text()) {
        item.require_defined();
        type_error("'in <string>' requires string as left operand, not {}", item.type_name());
      }
      return container.as_str().find(item.as_str()) != std::string::npos;
    case Value::Kind::kList: {
      const auto& items = container.as_list().items;
      return std::any_of(items.begin(), items.end(),
                         [&](const Value& other) { return equal(other, item); });
    }
    case Value::Kind::kDict:
      return !item.is_undefined() && container.as_dict().find(item) != nullptr;
    default:
      type_error("argument of type '{}' is not iterable", container.type_name());
  }
}

std::vector<Value> iterate(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return items;
    case Value::Kind::kList:
      return value.as_list().items;
    case Value::Kind::kDict:
      for (const auto& item : value.as_dict().items) items.push_back(item.first);
      return items;
    case Value::Kind::kText: {
      const MarkedText& text = value.as_text();
      for (size_t at = 0; at < text.size();) {
        const size_t end = at + character_bytes(text.str(), at);
        items.emplace_back(text.substr(at, end));
        at = end;
      }
      return items;
    }
    default:
      type_error("'{}' object is not iterable", value.type_name());
  }
}

int64_t length(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kText:
      return static_cast<int64_t>(count_characters(value.as_str()));
    case Value::Kind::kDict:
      return static_cast<int64_t>(value.as_dict().items.size());
    case Value::Kind::kLoop:
      return static_cast<int64_t>(value.as_loop()->items.size());
    case Value::Kind::kList:
      if (value.as_list().kind != List::Kind::kIterator) {
        return static_cast<int64_t>(value.as_list().items.size());
      }
      [[fallthrough]];
    default:
      type_error("object of type '{}' has no len()", value.type_name());
  }
}

}  // namespace winnow::text::jinja
