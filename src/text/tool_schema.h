// A tool's parameters as JSON Schema: the kinds of value that its keywords take.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"

namespace winnow::text {

// Names the first keyword of the wrong kind, below field ("tools[0].function.parameters"). Null is
// a keyword left out; unknown keywords and the words of "type" are the template's business.
Status check_tool_schema(const json::Value& schema, const std::string& field);

}  // namespace winnow::text
