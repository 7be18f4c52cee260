// Reasoning between <think> and </think>, as GLM, DeepSeek, Kimi and Qwen write it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/reasoning_parser.h"

namespace winnow::text {

struct ThinkStyle {
  // Ends the reasoning as </think> does, but stays in the content for the tool parser; "" for none.
  std::string_view tool_marker = "";
  // The member of chat_template_kwargs that switches thinking, and what holds where it is absent.
  // "" where thinking is always on.
  std::string_view switch_name = "";
  bool thinks_by_default = true;
  // Whether a prompt with no think tag in it at all means that reasoning comes first. Else the
  // model opens it itself, by a <think> at the start of its text.
  bool untagged_prompt_thinks = false;
};

std::unique_ptr<ReasoningParser> make_think_parser(const ThinkStyle& style,
                                                   const ReasoningStart& start);

}  // namespace winnow::text
