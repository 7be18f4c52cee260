// A chat format without a template.
#pragma once

#include <vector>

#include "text/chat_format.h"

namespace winnow::testing {

// "[role]content" for each message, then "<|assistant|><think>", or "</think>" with
// enable_thinking false, and what a continued assistant message has said.
class PlainChatFormat final : public text::ChatFormat {
 public:
  Result<std::vector<text::PromptPiece>> render(const text::ChatRequest& request) const override;
};

}  // namespace winnow::testing
