#include "base/json.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/json_fault.h"

namespace winnow::json {

Value::Value() noexcept : data_(nullptr) {}
Value::Value(std::nullptr_t) noexcept : data_(nullptr) {}
Value::Value(bool v) noexcept : data_(v) {}
Value::Value(int v) noexcept : data_(static_cast<int64_t>(v)) {}
Value::Value(int64_t v) noexcept : data_(v) {}
Value::Value(uint64_t v) noexcept : data_(static_cast<int64_t>(v)) {}
Value::Value(double v) noexcept : data_(v) {}
Value::Value(const char* v) : data_(std::string(v)) {}
Value::Value(std::string v) noexcept : data_(std::move(v)) {}
Value::Value(std::string_view v) : data_(std::string(v)) {}
Value::Value(Array v) noexcept : data_(std::move(v)) {}
Value::Value(Object v) noexcept : data_(std::move(v)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;
bool Value::operator==(const Value& other) const { return data_ == other.data_; }

const char* Value::kind_name() const {
  static constexpr const char* kNames[] = {"null",   "boolean", "integer", "number",
                                           "string", "array",   "object"};
  return kNames[data_.index()];
}

const Value* Value::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

void Value::set(std::string_view key, Value value) {
  if (Value* old = find(key)) {
    *old = std::move(value);
  } else {
    as_object().emplace_back(std::string(key), std::move(value));
  }
}

namespace {

// A linear scan finds duplicates of a small object faster than a hash set does.
constexpr size_t kLinearScanMembers = 16;

Status has_duplicate(const Object& object) {
  auto duplicate = [](const std::string& key) {
    return invalid_argument(key, "is a duplicate key");
  };
  if (object.size() <= kLinearScanMembers) {
    for (size_t i = 0; i < object.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (object[i].first == object[j].first) return duplicate(object[i].first);
      }
    }
    return {};
  }
  std::unordered_set<std::string_view> seen;
  seen.reserve(object.size());
  for (const auto& member : object) {
    if (!seen.insert(member.first).second) return duplicate(member.first);
  }
  return {};
}

// Puts what leads to a value in front of the path of what is wrong inside it.
Status inside(const std::string& step, Status status) {
  const bool direct = status.param.empty() || status.param.front() == '[';
  status.param = step + (direct ? "" : ".") + status.param;
  return status;
}

Status convert(simdjson::dom::element element, const ParseLimits& limits, Value& out) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::NULL_VALUE:
      return {};
    case element_type::BOOL:
      out = bool(element);
      return {};
    case element_type::INT64:
      out = int64_t(element);
      return {};
    case element_type::UINT64:
      return invalid_argument("", "is {}, beyond 64 signed bits", uint64_t(element));
    case element_type::DOUBLE:
      out = double(element);
      return {};
    case element_type::STRING:
      out = std::string_view(element);
      return {};
    case element_type::ARRAY: {
      const simdjson::dom::array items(element);
      Array array;
      array.reserve(items.size());
      for (auto child : items) {
        array.emplace_back();
        if (Status s = convert(child, limits, array.back()); !s.ok()) {
          return inside(fmt::format("[{}]", array.size() - 1), std::move(s));
        }
      }
      out = std::move(array);
      return {};
    }
    case element_type::OBJECT: {
      Object object;
      for (auto field : simdjson::dom::object(element)) {
        object.emplace_back(std::string(field.key), Value());
        if (Status s = convert(field.value, limits, object.back().second); !s.ok()) {
          return inside(object.back().first, std::move(s));
        }
      }
      if (limits.reject_duplicate_keys) {
        if (Status s = has_duplicate(object); !s.ok()) return s;
      }
      out = std::move(object);
      return {};
    }
  }
  return {};
}

// simdjson's words, where they leave out what the reader needs.
std::string what_is_wrong(simdjson::error_code error, const ParseLimits& limits) {
  if (error == simdjson::DEPTH_ERROR) {
    return fmt::format("arrays and objects are nested deeper than {}", limits.max_depth);
  }
  return simdjson::error_message(error);
}

// What begins with "is" or "has" gets its subject.
Status with_subject(Status status) {
  status.message = (status.param.empty() ? "the value" : status.param) + " " + status.message;
  return status;
}

Status refusal(std::string_view text, simdjson::error_code error, const ParseLimits& limits) {
  if (error == simdjson::NUMBER_ERROR || error == simdjson::STRING_ERROR) {
    if (Status s = first_bad_token(text); !s.ok()) return with_subject(std::move(s));
  }
  return invalid_argument("", "invalid JSON: {}", what_is_wrong(error, limits));
}

}  // namespace

Result<Value> parse(std::string_view text, const ParseLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) text = "";  // simdjson copies from where it begins, be it nowhere
  simdjson::dom::parser parser;
  if (auto error = parser.allocate(text.size(), limits.max_depth)) {
    return Status{StatusCode::kTooLarge, simdjson::error_message(error), ""};
  }
  simdjson::dom::element root;
  if (auto error = parser.parse(text.data(), text.size()).get(root)) {
    return refusal(text, error, limits);
  }
  Value value;
  if (Status s = convert(root, limits, value); !s.ok()) return with_subject(std::move(s));
  return value;
}

void append_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  size_t plain = 0;  // start of the run that needs no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        out += "\\u00";
        out.push_back(kHex[c >> 4]);
        out.push_back(kHex[c & 15]);
    }
  }
  out.append(text, plain, text.size() - plain);
  out.push_back('"');
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[40];
  // to_chars on its own prefers "1e+05" to "100000", as it is shorter. Python writes an exponent
  // only below 1e-4 and from 1e16 on.
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  auto [end, ec] =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string_view digits(buffer, static_cast<size_t>(end - buffer));
  out += digits;
  if (!exponent && digits.find('.') == std::string_view::npos) out += ".0";
}

void dump_to(std::string& out, const Value& value, Style style) {
  const std::string_view comma = style == Style::kPython ? ", " : ",";
  const std::string_view colon = style == Style::kPython ? ": " : ":";
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    out += std::to_string(value.as_integer());
  } else if (value.is_double()) {
    append_double(out, value.as_number());
  } else if (value.is_string()) {
    append_string(out, value.as_string());
  } else if (value.is_array()) {
    out.push_back('[');
    bool first = true;
    for (const Value& item : value.as_array()) {
      if (!first) out += comma;
      first = false;
      dump_to(out, item, style);
    }
    out.push_back(']');
  } else {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, item] : value.as_object()) {
      if (!first) out += comma;
      first = false;
      append_string(out, key);
      out += colon;
      dump_to(out, item, style);
    }
    out.push_back('}');
  }
}

std::string dump(const Value& value, Style style) {
  std::string out;
  dump_to(out, value, style);
  return out;
}

}  // namespace winnow::json
