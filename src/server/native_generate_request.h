// The body of /generate, read and checked.
#pragma once

#include <string>
#include <vector>

#include "server/api.h"
#include "server/protocol_sampling.h"

namespace winnow::server {

struct NativeRequest {
  RequestIdentity identity;
  std::vector<std::string> item_rids;  // by prompt, where the client gave a list
  std::vector<PromptRequest> prompts;
  bool batch = false;  // the answer is a list
  bool stream = false;
  bool return_logprob = false;
  bool return_text_in_logprobs = false;
  bool return_prompt_token_ids = false;
};

Result<NativeRequest> read_native_request(const json::Value& body, const Api& api);

}  // namespace winnow::server
