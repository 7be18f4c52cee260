// One choice's text divided into reasoning and content, with the count of reasoning tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "text/detokenizer.h"
#include "text/reasoning_parser.h"
#include "text/tokenizer.h"

namespace winnow::server {

class ReasoningSplit {
 public:
  // Without a parser: everything is content.
  ReasoningSplit() = default;
  // hold: reasoning comes out in one piece, when it ends (stream_reasoning false).
  ReasoningSplit(const text::Tokenizer& tokenizer,
                 std::string_view parser_name,
                 const text::ReasoningStart& start,
                 bool hold);

  text::ReasoningDelta append(std::string_view text, std::span<const int32_t> ids, bool finished);
  // Tokens up to and with the one that closed the reasoning.
  int64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  void count(std::span<const int32_t> ids);

  std::unique_ptr<text::ReasoningParser> parser_;
  // The text that parser_ sees is held back by stop strings: tokens are counted on their own.
  std::unique_ptr<text::ReasoningParser> counter_;
  std::unique_ptr<text::Detokenizer> counter_text_;
  bool hold_ = false;
  std::string held_;
  int64_t reasoning_tokens_ = 0;
};

}  // namespace winnow::server
