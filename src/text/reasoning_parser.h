// Splits generated text into reasoning_content and content, streamed in any cuts.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::text {

struct ReasoningDelta {
  std::string reasoning;
  std::string content;
};

// One per choice. Joined deltas do not depend on how the text was cut (fault B99). Nothing is
// trimmed, and nothing held back but what may still become a tag.
class ReasoningParser {
 public:
  virtual ~ReasoningParser() = default;
  virtual ReasoningDelta append(std::string_view text) = 0;
  virtual ReasoningDelta finish() = 0;  // releases what was held back
  virtual bool in_reasoning() const = 0;
};

struct ReasoningStart {
  // control_text() of the rendered prompt: decides whether <think> is open (fault B100). Empty
  // where the prompt came as ids: then chat_template_kwargs decide.
  std::string_view prompt;
  const json::Value* chat_template_kwargs = nullptr;
};

// name: a row of the parser table ("glm45", ...). nullptr for an unknown name.
std::unique_ptr<ReasoningParser> make_reasoning_parser(std::string_view name,
                                                       const ReasoningStart& start);
std::vector<std::string> reasoning_parser_names();

}  // namespace winnow::text
