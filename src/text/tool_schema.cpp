#include "text/tool_schema.h"

#include <algorithm>
#include <string_view>

namespace winnow::text {
namespace {

enum class Takes {
  kSchema,        // an object, true or false
  kSchemaOrList,  // items, as older drafts have it
  kSchemaList,
  kSchemaMap,      // name to schema
  kTypeName,       // a string, or an array of them
  kStringList,     // required
  kStringListMap,  // dependentRequired
  kArray,
  kString,
  kNumber,
  kCount,
  kBoolean,
};

struct Keyword {
  std::string_view name;
  Takes takes;
};

constexpr Keyword kKeywords[] = {
    {"type", Takes::kTypeName},
    {"properties", Takes::kSchemaMap},
    {"required", Takes::kStringList},
    {"enum", Takes::kArray},
    {"items", Takes::kSchemaOrList},
    {"additionalProperties", Takes::kSchema},
    {"description", Takes::kString},
    {"title", Takes::kString},
    {"format", Takes::kString},
    {"pattern", Takes::kString},
    {"$ref", Takes::kString},
    {"$schema", Takes::kString},
    {"examples", Takes::kArray},
    {"$defs", Takes::kSchemaMap},
    {"definitions", Takes::kSchemaMap},
    {"patternProperties", Takes::kSchemaMap},
    {"dependentSchemas", Takes::kSchemaMap},
    {"dependentRequired", Takes::kStringListMap},
    {"allOf", Takes::kSchemaList},
    {"anyOf", Takes::kSchemaList},
    {"oneOf", Takes::kSchemaList},
    {"prefixItems", Takes::kSchemaList},
    {"not", Takes::kSchema},
    {"if", Takes::kSchema},
    {"then", Takes::kSchema},
    {"else", Takes::kSchema},
    {"contains", Takes::kSchema},
    {"propertyNames", Takes::kSchema},
    {"unevaluatedItems", Takes::kSchema},
    {"unevaluatedProperties", Takes::kSchema},
    {"minimum", Takes::kNumber},
    {"maximum", Takes::kNumber},
    {"multipleOf", Takes::kNumber},
    {"minLength", Takes::kCount},
    {"maxLength", Takes::kCount},
    {"minItems", Takes::kCount},
    {"maxItems", Takes::kCount},
    {"minProperties", Takes::kCount},
    {"maxProperties", Takes::kCount},
    {"uniqueItems", Takes::kBoolean},
};

Status wrong(const std::string& field, std::string_view expected, const json::Value& value) {
  return invalid_argument(field, "{} must be {}, not {}", field, expected, value.kind_name());
}

Status check_schema(const json::Value& schema, const std::string& field);

Status check_list(const json::Value& value, const std::string& field) {
  if (!value.is_array()) return wrong(field, "an array of schemas", value);
  for (size_t i = 0; i < value.as_array().size(); ++i) {
    if (Status s = check_schema(value.as_array()[i], fmt::format("{}[{}]", field, i)); !s.ok()) {
      return s;
    }
  }
  return {};
}

Status check_strings(const json::Value& value, const std::string& field) {
  if (!value.is_array()) return wrong(field, "an array of strings", value);
  for (size_t i = 0; i < value.as_array().size(); ++i) {
    const json::Value& item = value.as_array()[i];
    if (!item.is_string()) return wrong(fmt::format("{}[{}]", field, i), "a string", item);
  }
  return {};
}

// check(value, field) for every member of what must be an object.
template <typename Check>
Status check_map(const json::Value& value,
                 const std::string& field,
                 std::string_view expected,
                 Check check) {
  if (!value.is_object()) return wrong(field, expected, value);
  for (const auto& [name, member] : value.as_object()) {
    if (Status s = check(member, fmt::format("{}.{}", field, name)); !s.ok()) return s;
  }
  return {};
}

Status check_type(const json::Value& value, const std::string& field) {
  if (value.is_string()) return {};
  if (!value.is_array()) return wrong(field, "a string or an array of strings", value);
  if (value.as_array().empty()) return invalid_argument(field, "{} must not be empty", field);
  return check_strings(value, field);
}

Status check_plain(const json::Value& value, const std::string& field, Takes takes) {
  const bool count =
      value.is_number() && value.as_number() >= 0 &&
      value.as_number() ==
          static_cast<double>(static_cast<int64_t>(std::min(value.as_number(), 1e18)));
  switch (takes) {
    case Takes::kArray:
      return value.is_array() ? Status{} : wrong(field, "an array", value);
    case Takes::kString:
      return value.is_string() ? Status{} : wrong(field, "a string", value);
    case Takes::kNumber:
      return value.is_number() ? Status{} : wrong(field, "a number", value);
    case Takes::kCount:
      return count ? Status{}
                   : invalid_argument(field, "{} must be a whole number of at least 0", field);
    default:
      return value.is_bool() ? Status{} : wrong(field, "true or false", value);
  }
}

Status check_keyword(const json::Value& value, const std::string& field, Takes takes) {
  switch (takes) {
    case Takes::kSchema:
      return check_schema(value, field);
    case Takes::kSchemaOrList:
      return value.is_array() ? check_list(value, field) : check_schema(value, field);
    case Takes::kSchemaList:
      return check_list(value, field);
    case Takes::kSchemaMap:
      return check_map(value, field, "an object", check_schema);
    case Takes::kTypeName:
      return check_type(value, field);
    case Takes::kStringList:
      return check_strings(value, field);
    case Takes::kStringListMap:
      return check_map(value, field, "an object", check_strings);
    default:
      return check_plain(value, field, takes);
  }
}

// Recurses as deep as the JSON is nested, which its parser bounds.
Status check_schema(const json::Value& schema, const std::string& field) {
  if (schema.is_bool()) return {};
  if (!schema.is_object()) return wrong(field, "an object", schema);
  for (const auto& [name, value] : schema.as_object()) {
    if (value.is_null()) continue;
    const auto* keyword =
        std::find_if(std::begin(kKeywords), std::end(kKeywords),
                     [&, &key = name](const Keyword& known) { return known.name == key; });
    if (keyword == std::end(kKeywords)) continue;
    if (Status s = check_keyword(value, fmt::format("{}.{}", field, name), keyword->takes);
        !s.ok()) {
      return s;
    }
  }
  return {};
}

}  // namespace

Status check_tool_schema(const json::Value& schema, const std::string& field) {
  if (!schema.is_object()) return wrong(field, "an object", schema);
  return check_schema(schema, field);
}

}  // namespace winnow::text
