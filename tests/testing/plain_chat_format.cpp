#include "testing/plain_chat_format.h"

#include <fmt/format.h>

#include "text/chat_messages.h"

namespace winnow::testing {

Result<std::vector<text::PromptPiece>> PlainChatFormat::render(
    const text::ChatRequest& request) const {
  using text::ControlTokens;
  Result<text::ChatMessages> chat = text::normalized(request, {});
  if (!chat.ok()) return chat.status();
  std::optional<text::Continuation> continuation;
  if (request.continue_final_message) {
    Result<text::Continuation> taken = text::take_continuation(chat.value());
    if (!taken.ok()) return taken.status();
    continuation = std::move(taken.value());
  }
  std::vector<text::PromptPiece> pieces;
  if (!chat.value().tools.is_null()) {
    text::append_piece(pieces, "[tools]" + json::dump(chat.value().tools), ControlTokens::kPlain);
  }
  for (const json::Value& message : chat.value().messages) {
    text::append_piece(pieces, fmt::format("[{}]", message.find("role")->as_string()),
                       ControlTokens::kParse);
    text::append_piece(pieces, message.find("content")->as_string(), ControlTokens::kPlain);
  }
  const json::Value* thinking = request.chat_template_kwargs.find("enable_thinking");
  const bool think = thinking == nullptr || !thinking->is_bool() || thinking->as_bool();
  text::append_piece(pieces, think ? "<|assistant|><think>" : "<|assistant|></think>",
                     ControlTokens::kParse);
  if (continuation) text::append_continuation(pieces, *continuation);
  return pieces;
}

}  // namespace winnow::testing
