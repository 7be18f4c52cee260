#include "eval/request_body.h"

#include "base/error.h"

namespace winnow::eval {
namespace {

json::Array as_json(const std::vector<std::string>& texts) {
  return json::Array(texts.begin(), texts.end());
}

json::Value generate_body(const RequestSettings& s, std::string prompt, int64_t repeat) {
  json::Object sampling = {{"temperature", s.temperature},
                           {"max_new_tokens", s.max_tokens},
                           {"stop", as_json(s.stop)},
                           {"skip_special_tokens", true},
                           {"spaces_between_special_tokens", true}};
  if (s.top_p != 1) sampling.emplace_back("top_p", s.top_p);
  if (s.top_k) sampling.emplace_back("top_k", *s.top_k);
  if (s.min_p) sampling.emplace_back("min_p", *s.min_p);
  if (s.seed) sampling.emplace_back("sampling_seed", *s.seed + repeat);
  return json::Object{{"text", std::move(prompt)}, {"sampling_params", std::move(sampling)}};
}

json::Value openai_body(const RequestSettings& s, std::string prompt, int64_t repeat) {
  json::Object body = {{"model", s.model}};
  if (s.api == Api::kChat) {
    json::Array messages;
    messages.emplace_back(json::Object{{"role", "user"}, {"content", std::move(prompt)}});
    body.emplace_back("messages", std::move(messages));
  } else {
    body.emplace_back("prompt", std::move(prompt));
  }
  body.emplace_back("temperature", s.temperature);
  body.emplace_back("top_p", s.top_p);
  body.emplace_back("max_tokens", s.max_tokens);
  if (!s.stop.empty()) body.emplace_back("stop", as_json(s.stop));
  if (s.top_k) body.emplace_back("top_k", *s.top_k);
  if (s.min_p) body.emplace_back("min_p", *s.min_p);
  if (s.seed) body.emplace_back("seed", *s.seed + repeat);
  if (s.api == Api::kChat) {
    if (!s.reasoning_effort.empty()) body.emplace_back("reasoning_effort", s.reasoning_effort);
    if (!s.chat_template_kwargs.empty()) {
      body.emplace_back("chat_template_kwargs", s.chat_template_kwargs);
    }
  }
  return body;
}

}  // namespace

std::string_view request_target(Api api) {
  switch (api) {
    case Api::kGenerate:
      return "/generate";
    case Api::kCompletion:
      return "/v1/completions";
    case Api::kChat:
      break;
  }
  return "/v1/chat/completions";
}

json::Value request_body(const RequestSettings& settings, std::string prompt, int64_t repeat) {
  return settings.api == Api::kGenerate ? generate_body(settings, std::move(prompt), repeat)
                                        : openai_body(settings, std::move(prompt), repeat);
}

json::Object thinking_kwargs(std::string_view mode) {
  if (mode == "glm-45" || mode == "qwen-3") return {{"enable_thinking", true}};
  if (mode == "deepseek-v3" || mode == "kimi-k2") return {{"thinking", true}};
  throw_error("--thinking-mode {}: expected one of glm-45, deepseek-v3, kimi-k2, qwen-3", mode);
}

}  // namespace winnow::eval
