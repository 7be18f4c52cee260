// The chat format of DeepSeek-V3.2, whose checkpoints carry no Jinja template.
//
// chat_template_kwargs: `thinking` (else `enable_thinking`), false by default; `drop_thinking`,
// true by default: while thinking, developer messages in front of the last user message are left
// out. (Reasoning in front of it is never written.) Others are ignored.
// A system or developer message may carry `tools` and `response_format` (a schema); the request's
// tools belong to the system message in front, which is added where there is none.
// Refused, beyond what text/chat_messages.h refuses: tool results without as many calls before
// them, calls without all their results, an empty developer message, and, while thinking, an
// assistant message behind the last user message with neither reasoning nor calls.
#pragma once

#include <memory>

#include "text/chat_format.h"

namespace winnow::text {

std::unique_ptr<ChatFormat> make_deepseek_v32_format();

}  // namespace winnow::text
