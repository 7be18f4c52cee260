// The body of /v1/chat/completions, read and checked.
#pragma once

#include <string>
#include <vector>

#include "server/openai_format.h"
#include "server/protocol_sampling.h"
#include "text/chat_format.h"

namespace winnow::server {

struct ChatCompletionRequest {
  text::ChatRequest chat;
  std::vector<int32_t> input_ids;  // not empty: the prompt, instead of messages
  std::string model = "default";   // echoed, not checked
  RequestIdentity identity;
  GenerationOptions options;
  engine::LogprobOptions logprobs;
  StreamOptions streaming;
  bool separate_reasoning = true;
  bool stream_reasoning = true;
  bool parallel_tool_calls = true;
  bool force_nonempty_content = false;  // of chat_template_kwargs
  bool return_token_ids = false;
};

Result<ChatCompletionRequest> read_chat_request(const json::Value& body,
                                                const ServerConfig& config);

// messages, tools, tool_choice, chat_template_kwargs, reasoning_effort, continue_final_message:
// what decides the prompt; /tokenize reads them as well.
text::ChatRequest read_chat_prompt(ObjectReader& reader);

}  // namespace winnow::server
