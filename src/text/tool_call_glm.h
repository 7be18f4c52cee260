// GLM's tool calls: <tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>...</tool_call>.
#pragma once

#include <memory>

#include "text/tool_call_parser.h"

namespace winnow::text {

std::unique_ptr<ToolCallParser> make_glm_tool_call_parser(const json::Value& tools);

}  // namespace winnow::text
