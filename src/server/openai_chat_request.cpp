#include "server/openai_chat_request.h"

#include "server/limits.h"

namespace winnow::server {
namespace {

void read_max_tokens(ObjectReader& reader, GenerationOptions& options) {
  const auto max_tokens = reader.integer("max_tokens", 0, kMaxNewTokens);
  const auto max_completion_tokens = reader.integer("max_completion_tokens", 0, kMaxNewTokens);
  options.max_new_tokens = max_completion_tokens ? max_completion_tokens : max_tokens;
}

void read_logprobs(ObjectReader& reader, int64_t vocab_size, engine::LogprobOptions& logprobs) {
  logprobs.output = reader.boolean("logprobs", false);
  const int64_t most = std::min(kMaxTopLogprobs, vocab_size);
  const auto top = reader.integer("top_logprobs", 0, most);
  if (top && *top > 0 && !logprobs.output) reader.fail("top_logprobs", "needs logprobs true");
  logprobs.top = static_cast<int32_t>(top.value_or(0));
}

void read_returns(ObjectReader& reader, ChatCompletionRequest& request) {
  request.return_token_ids = reader.boolean("return_token_ids", false);
  for (const char* field : {"return_hidden_states", "return_routed_experts",
                            "return_prompt_token_ids", "return_meta_info"}) {
    if (reader.boolean(field, false)) reader.fail(field, "is not supported yet");
  }
}

}  // namespace

Result<ChatCompletionRequest> read_chat_request(const json::Value& body,
                                                const ServerConfig& config) {
  ObjectReader reader(body);
  ChatCompletionRequest request;
  request.model = reader.string("model").value_or("default");
  request.identity = read_identity(reader);
  request.streaming = read_stream_options(reader, config.stream_include_usage);
  read_max_tokens(reader, request.options);
  read_sampling(reader, config.sampling_defaults, config.vocab_size, request.options);
  read_min_and_seed(reader, "min_tokens", "seed", request.options);
  read_logprobs(reader, config.vocab_size, request.logprobs);
  read_response_format(reader);
  for (const char* field : {"functions", "function_call"}) {
    reader.refuse(field, "is not supported: use tools and tool_choice");
  }
  read_returns(reader, request);
  request.separate_reasoning = reader.boolean("separate_reasoning", true);
  request.stream_reasoning = reader.boolean("stream_reasoning", true);
  request.parallel_tool_calls = reader.boolean("parallel_tool_calls", true);
  request.chat = read_chat_prompt(reader);
  if (const json::Value* flag = request.chat.chat_template_kwargs.find("force_nonempty_content")) {
    request.force_nonempty_content = flag->is_bool() && flag->as_bool();
  }
  request.input_ids = reader.ids("input_ids", INT64_MAX, config.vocab_size);
  if (request.input_ids.empty() && request.chat.messages.as_array().empty()) {
    reader.fail("messages", "must not be empty");
  }
  if (!reader.ok()) return reader.status();
  // Tool markers must survive for whoever parses the calls.
  if (!request.chat.tools.is_null()) request.options.output.skip_special_tokens = false;
  return request;
}

}  // namespace winnow::server
