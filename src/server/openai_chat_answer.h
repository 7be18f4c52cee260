// Answers of /v1/chat/completions: one object, or chunks.
#pragma once

#include <memory>
#include <string>

#include "server/generation.h"
#include "server/openai_chat_request.h"

namespace winnow::server {

struct ChatAnswerPlan {
  std::string id;
  std::string model;
  std::string prompt;  // as rendered: where the reasoning parser starts
  json::Value chat_template_kwargs = json::Object{};
  std::string reasoning_parser;  // "": none
  std::string tool_call_parser;  // "": none, or the request has no tools
  json::Value tools;
  bool parallel_tool_calls = true;
  int32_t num_choices = 1;
  StreamOptions streaming;
  bool logprobs = false;
  bool stream_reasoning = true;
  bool force_nonempty_content = false;
  bool return_token_ids = false;
};

std::unique_ptr<AnswerWriter> make_chat_answer(const Api& api,
                                               std::shared_ptr<Exchange> exchange,
                                               ChatAnswerPlan plan);

}  // namespace winnow::server
