#include "text/tool_call_parser.h"

#include "text/tool_call_glm.h"

namespace winnow::text {

namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<ToolCallParser> (*make)(const json::Value& tools);
};

// GLM-4.5 ends a call's name with a line break, GLM-4.7 and 5 do not: one parser reads both.
constexpr Row kParsers[] = {
    {"glm", make_glm_tool_call_parser},
    {"glm45", make_glm_tool_call_parser},
    {"glm47", make_glm_tool_call_parser},
};

}  // namespace

std::unique_ptr<ToolCallParser> make_tool_call_parser(std::string_view name,
                                                      const json::Value& tools) {
  for (const Row& row : kParsers) {
    if (row.name == name) return row.make(tools);
  }
  return nullptr;
}

std::vector<std::string> tool_call_parser_names() {
  std::vector<std::string> names;
  for (const Row& row : kParsers) names.emplace_back(row.name);
  return names;
}

}  // namespace winnow::text
