// The chat formats under test, and prompts as text that shows which parts are content.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"

namespace winnow::testing {

// glm5, glm52, kimi_k2, chatml, deepseek_v31, deepseek_v32.
std::unique_ptr<text::ChatFormat> make_chat_format(std::string_view name);
std::vector<std::string> chat_format_names();

json::Value parse_json(std::string_view text);

// {"messages": ..., "tools": ..., other members: chat_template_kwargs}.
text::ChatRequest chat_request(std::string_view json_text);

// The prompt, or "error: " and the status' message.
std::string render(const text::ChatFormat& format, const text::ChatRequest& request);
std::string render(std::string_view format_name, std::string_view json_text);

// The same with each stretch of content between « and ».
std::string render_marked(std::string_view format_name, const text::ChatRequest& request);

}  // namespace winnow::testing
