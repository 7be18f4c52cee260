#include "server/reasoning_split.h"

#include <utility>

#include "base/error.h"

namespace winnow::server {

ReasoningSplit::ReasoningSplit(const text::Tokenizer& tokenizer,
                               std::string_view parser_name,
                               const text::ReasoningStart& start,
                               bool hold)
    : parser_(text::make_reasoning_parser(parser_name, start)),
      counter_(text::make_reasoning_parser(parser_name, start)),
      counter_text_(std::make_unique<text::Detokenizer>(tokenizer, false)),
      hold_(hold) {
  WINNOW_CHECK(parser_ != nullptr, "reasoning parser {}", parser_name);
}

void ReasoningSplit::count(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (!counter_->in_reasoning()) return;
    ++reasoning_tokens_;
    counter_->append(counter_text_->append({&id, 1}));
  }
}

text::ReasoningDelta ReasoningSplit::append(std::string_view text,
                                            std::span<const int32_t> ids,
                                            bool finished) {
  if (parser_ == nullptr) return {"", std::string(text)};
  count(ids);
  text::ReasoningDelta delta = parser_->append(text);
  if (finished) {
    text::ReasoningDelta rest = parser_->finish();
    delta.reasoning += rest.reasoning;
    delta.content += rest.content;
  }
  if (!hold_) return delta;
  held_ += delta.reasoning;
  delta.reasoning.clear();
  if (finished || !parser_->in_reasoning()) delta.reasoning = std::exchange(held_, {});
  return delta;
}

}  // namespace winnow::server
