// One choice's content divided into text and tool calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tool_call_parser.h"

namespace winnow::server {

class ToolCallSplit {
 public:
  // Without a parser: everything is text.
  ToolCallSplit() = default;
  // tools must outlive this. parallel false: the first call is the only one.
  ToolCallSplit(std::string_view parser_name, const json::Value& tools, bool parallel);

  text::ToolCallDeltas append(std::string content, bool finished);
  bool any_call() const { return any_call_; }

 private:
  std::unique_ptr<text::ToolCallParser> parser_;
  bool parallel_ = true;
  bool any_call_ = false;
};

// "call_" and 24 hexadecimal digits, of this request alone.
std::string tool_call_id(std::string_view request_id, int32_t choice_idx, int32_t call_idx);

}  // namespace winnow::server
