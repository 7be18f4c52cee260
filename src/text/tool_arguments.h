// What the text of a tool call's argument means, by the tool's JSON Schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

namespace winnow::text {

// Kinds of JSON value, as a set.
enum JsonKind : uint8_t {
  kNullKind = 1 << 0,
  kBooleanKind = 1 << 1,
  kIntegerKind = 1 << 2,
  kFractionKind = 1 << 3,
  kStringKind = 1 << 4,
  kArrayKind = 1 << 5,
  kObjectKind = 1 << 6,
  kAnyKind = 127,
};

// The parameters of the function of this name; nullptr where the request has none such.
const json::Value* find_tool_parameters(const json::Value& tools, std::string_view name);

// The kinds that a parameter's schema admits: type, enum, const, anyOf, oneOf, allOf and $ref into
// the same document. kAnyKind where nothing is said.
uint8_t argument_kinds(const json::Value* parameters, std::string_view key);

// JSON for the text of an argument that is not a plain string (kinds != kStringKind): the text
// itself where it is JSON of an admitted kind, so that '001' and 'true' stay strings where strings
// are wanted; else what a model may have meant (a quoted number, Python's True); else a string.
std::string argument_json(std::string_view text, uint8_t kinds);

}  // namespace winnow::text
