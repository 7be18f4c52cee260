#include "text/reasoning_parser.h"

#include "text/reasoning_think.h"

namespace winnow::text {

namespace {

std::unique_ptr<ReasoningParser> make_glm45(const ReasoningStart& start) {
  return make_think_parser({.tool_marker = "<tool_call>", .switch_name = "enable_thinking"}, start);
}

std::unique_ptr<ReasoningParser> make_deepseek_r1(const ReasoningStart& start) {
  return make_think_parser({.untagged_prompt_thinks = true}, start);
}

std::unique_ptr<ReasoningParser> make_deepseek_v3(const ReasoningStart& start) {
  return make_think_parser({.switch_name = "thinking", .thinks_by_default = false}, start);
}

std::unique_ptr<ReasoningParser> make_kimi_k2(const ReasoningStart& start) {
  return make_think_parser(
      {.tool_marker = "<|tool_calls_section_begin|>", .switch_name = "thinking"}, start);
}

struct Row {
  std::string_view name;
  std::unique_ptr<ReasoningParser> (*make)(const ReasoningStart&);
};

constexpr Row kParsers[] = {
    {"glm45", make_glm45},
    {"qwen3", make_glm45},
    {"deepseek-r1", make_deepseek_r1},
    {"deepseek-v3", make_deepseek_v3},
    {"kimi_k2", make_kimi_k2},
};

}  // namespace

std::unique_ptr<ReasoningParser> make_reasoning_parser(std::string_view name,
                                                       const ReasoningStart& start) {
  for (const Row& row : kParsers) {
    if (row.name == name) return row.make(start);
  }
  return nullptr;
}

std::vector<std::string> reasoning_parser_names() {
  std::vector<std::string> names;
  for (const Row& row : kParsers) names.emplace_back(row.name);
  return names;
}

}  // namespace winnow::text
