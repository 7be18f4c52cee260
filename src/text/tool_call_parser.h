// Splits generated text into content and tool calls, streamed in any cuts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::text {

struct ToolCallDelta {
  int32_t idx = 0;        // of the call within its message
  std::string name;       // in a call's first delta, "" in those behind it
  std::string arguments;  // JSON text; a call's, joined, are one object
};

struct ToolCallDeltas {
  std::string content;
  std::vector<ToolCallDelta> calls;
};

// One per choice, behind the reasoning parser. Joined deltas do not depend on how the text was cut
// (fault B99), so an answer is the same streamed and whole (B97). A call that the text ends in the
// middle of stays as it is, its arguments unclosed; one whose name is not complete is content.
class ToolCallParser {
 public:
  virtual ~ToolCallParser() = default;
  virtual ToolCallDeltas append(std::string_view text) = 0;
  virtual ToolCallDeltas finish() = 0;  // releases what was held back
};

// name: a row of the parser table ("glm47", ...). tools: the request's array; their schemas decide
// what an argument's text means. It must outlive the parser. nullptr for an unknown name.
std::unique_ptr<ToolCallParser> make_tool_call_parser(std::string_view name,
                                                      const json::Value& tools);
std::vector<std::string> tool_call_parser_names();

}  // namespace winnow::text
