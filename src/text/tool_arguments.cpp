#include "text/tool_arguments.h"

#include <cmath>

namespace winnow::text {

namespace {

constexpr int kMaxSchemaDepth = 16;  // of combinations and references: a cycle says nothing more

uint8_t kind_of(const json::Value& value) {
  if (value.is_null()) return kNullKind;
  if (value.is_bool()) return kBooleanKind;
  if (value.is_integer()) return kIntegerKind;
  if (value.is_double()) {
    const double number = value.as_number();
    return number == std::floor(number) ? kIntegerKind | kFractionKind : kFractionKind;
  }
  if (value.is_string()) return kStringKind;
  return value.is_array() ? kArrayKind : kObjectKind;
}

uint8_t kinds_of_type(std::string_view type) {
  if (type == "null") return kNullKind;
  if (type == "boolean") return kBooleanKind;
  if (type == "integer") return kIntegerKind;
  if (type == "number") return kIntegerKind | kFractionKind;
  if (type == "string") return kStringKind;
  if (type == "array") return kArrayKind;
  return type == "object" ? kObjectKind : kAnyKind;
}

uint8_t kinds_of_types(const json::Value& type) {
  if (type.is_string()) return kinds_of_type(type.as_string());
  if (!type.is_array()) return kAnyKind;
  uint8_t kinds = 0;
  for (const json::Value& one : type.as_array()) {
    if (!one.is_string()) return kAnyKind;
    kinds |= kinds_of_type(one.as_string());
  }
  return kinds;
}

// "#/$defs/place" within root; nullptr for anything else.
const json::Value* resolve(const json::Value& root, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  reference.remove_prefix(2);
  const json::Value* at = &root;
  while (at != nullptr) {
    const size_t end = reference.find('/');
    at = at->find(reference.substr(0, end));
    if (end == std::string_view::npos) return at;
    reference.remove_prefix(end + 1);
  }
  return nullptr;
}

uint8_t kinds_of(const json::Value& schema, const json::Value& root, int depth) {
  if (!schema.is_object() || depth > kMaxSchemaDepth) return kAnyKind;
  uint8_t kinds = kAnyKind;
  if (const json::Value* type = schema.find("type")) kinds &= kinds_of_types(*type);
  if (const json::Value* value = schema.find("const")) kinds &= kind_of(*value);
  if (const json::Value* values = schema.find("enum"); values != nullptr && values->is_array()) {
    uint8_t listed = 0;
    for (const json::Value& value : values->as_array()) listed |= kind_of(value);
    kinds &= listed;
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const json::Value* branches = schema.find(key);
    if (branches == nullptr || !branches->is_array()) continue;
    uint8_t some = 0;
    for (const json::Value& branch : branches->as_array())
      some |= kinds_of(branch, root, depth + 1);
    kinds &= some;
  }
  if (const json::Value* all = schema.find("allOf"); all != nullptr && all->is_array()) {
    for (const json::Value& part : all->as_array()) kinds &= kinds_of(part, root, depth + 1);
  }
  if (const json::Value* reference = schema.find("$ref");
      reference != nullptr && reference->is_string()) {
    const json::Value* target = resolve(root, reference->as_string());
    if (target != nullptr) kinds &= kinds_of(*target, root, depth + 1);
  }
  if (kinds == 0) return kAnyKind;  // what contradicts itself says nothing
  return kinds;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_json_of(std::string_view text, uint8_t kinds) {
  const auto value = json::parse(text);
  return value.ok() && (kind_of(value.value()) & kinds) != 0;
}

std::string_view from_python(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  return text == "None" ? "null" : text;
}

}  // namespace

const json::Value* find_tool_parameters(const json::Value& tools, std::string_view name) {
  if (!tools.is_array()) return nullptr;
  for (const json::Value& tool : tools.as_array()) {
    const json::Value* function = tool.find("function");
    if (function == nullptr) function = &tool;
    const json::Value* own = function->find("name");
    if (own != nullptr && own->is_string() && own->as_string() == name) {
      return function->find("parameters");
    }
  }
  return nullptr;
}

uint8_t argument_kinds(const json::Value* parameters, std::string_view key) {
  if (parameters == nullptr) return kAnyKind;
  const json::Value* properties = parameters->find("properties");
  const json::Value* schema = properties == nullptr ? nullptr : properties->find(key);
  if (schema == nullptr) return kAnyKind;
  return kinds_of(*schema, *parameters, 0);
}

std::string argument_json(std::string_view text, uint8_t kinds) {
  const std::string_view bare = trimmed(text);
  if (is_json_of(bare, kinds)) return std::string(bare);
  const std::string_view meant = from_python(bare);
  if (meant != bare && is_json_of(meant, kinds)) return std::string(meant);
  if ((kinds & kStringKind) == 0 && is_json_of(bare, kStringKind)) {  // "40" in quotes
    const std::string inner = json::parse(bare).value().as_string();
    if (is_json_of(inner, kinds)) return std::string(trimmed(inner));
  }
  std::string quoted;
  json::append_string(quoted, text);
  return quoted;
}

}  // namespace winnow::text
