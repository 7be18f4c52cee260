// The requests that evaluations send, in the three forms that servers take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::eval {

enum class Api {
  kGenerate,    // POST /generate: plain text, SGLang's own form
  kCompletion,  // POST /v1/completions: plain text
  kChat,        // POST /v1/chat/completions: one user message
};

struct RequestSettings {
  Api api = Api::kChat;
  std::string model;
  int64_t max_tokens = 2048;
  double temperature = 0;
  double top_p = 1;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<int64_t> seed;  // of repeat 0; repeat r sends seed + r
  std::string reasoning_effort;
  json::Object chat_template_kwargs;  // kChat only
  std::vector<std::string> stop;
};

std::string_view request_target(Api api);
json::Value request_body(const RequestSettings& settings, std::string prompt, int64_t repeat);

// What asks a chat template to think: glm-45 and qwen-3 {"enable_thinking": true}, deepseek-v3 and
// kimi-k2 {"thinking": true}. Throws Error naming the modes there are.
json::Object thinking_kwargs(std::string_view mode);

}  // namespace winnow::eval
