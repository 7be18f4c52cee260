// Answers of /v1/completions: one object, or chunks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/openai_format.h"

namespace winnow::server {

struct CompletionAnswerPlan {
  std::string id;
  std::string model;
  std::vector<std::string> echo;  // by prompt: text to put in front; empty without echo
  int32_t num_prompts = 1;
  int32_t choices_per_prompt = 1;
  StreamOptions streaming;
  bool logprobs = false;
};

std::unique_ptr<AnswerWriter> make_completion_answer(const Api& api,
                                                     std::shared_ptr<Exchange> exchange,
                                                     CompletionAnswerPlan plan);

}  // namespace winnow::server
