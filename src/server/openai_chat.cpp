// POST /v1/chat/completions
#include <utility>

#include "server/endpoints.h"
#include "server/openai_chat_answer.h"
#include "server/openai_chat_request.h"

namespace winnow::server {
namespace {

struct RenderedPrompt {
  std::vector<int32_t> ids;
  std::string text;  // what is ours in it: shows whether the thinking is open; "" of given ids
};

Result<RenderedPrompt> render(const Api& api, ChatCompletionRequest& request) {
  RenderedPrompt prompt;
  if (!request.input_ids.empty()) {
    prompt.ids = std::move(request.input_ids);
    return prompt;
  }
  if (api.chat_format == nullptr) {
    return invalid_argument("messages",
                            "this checkpoint has no chat template; use /v1/completions");
  }
  Result<std::vector<text::PromptPiece>> pieces = api.chat_format->render(request.chat);
  if (!pieces.ok()) return pieces.status();
  prompt.text = text::control_text(pieces.value());
  prompt.ids = api.tokenizer.encode(pieces.value());
  if (prompt.ids.empty()) return invalid_argument("messages", "the prompt is empty");
  return prompt;
}

// A parser needs its markers in the text: some tokenizers hide them with the special tokens.
void keep_markers(const Api& api,
                  std::initializer_list<const char*> markers,
                  OutputOptions& output) {
  for (const char* marker : markers) {
    const std::optional<int32_t> id = api.tokenizer.token_id(marker);
    if (id && api.tokenizer.is_special(*id)) output.skip_special_tokens = false;
  }
}

}  // namespace

void chat_completions(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kMustBeJson);
  if (!body) return;
  Result<ChatCompletionRequest> read = read_chat_request(*body, api.config);
  if (!read.ok()) return refuse(api, *call.exchange, read.status());
  ChatCompletionRequest& request = read.value();
  const bool from_ids = !request.input_ids.empty();
  Result<RenderedPrompt> prompt = render(api, request);
  if (!prompt.ok()) return refuse(api, *call.exchange, prompt.status());

  ChatAnswerPlan plan{
      .id = request.identity.rid,
      .model = request.model,
      .prompt = std::move(prompt.value().text),
      .chat_template_kwargs = std::move(request.chat.chat_template_kwargs),
      .reasoning_parser = request.separate_reasoning ? api.config.reasoning_parser : "",
      .tool_call_parser = request.chat.tools.is_null() ? "" : api.config.tool_call_parser,
      .tools = std::move(request.chat.tools),
      .parallel_tool_calls = request.parallel_tool_calls,
      .num_choices = request.options.n,
      .streaming = request.streaming,
      .logprobs = request.logprobs.output,
      .stream_reasoning = request.stream_reasoning,
      .force_nonempty_content = request.force_nonempty_content,
      .return_token_ids = request.return_token_ids};
  if (!plan.reasoning_parser.empty()) {
    keep_markers(api, {"</think>", "<think>", "◁/think▷"}, request.options.output);
  }
  if (!plan.tool_call_parser.empty()) {
    keep_markers(api, {"<tool_call>", "<arg_key>", "<arg_value>"}, request.options.output);
  }
  std::vector<PromptRequest> prompts;
  prompts.push_back({.ids = std::move(prompt.value().ids),
                     .options = std::move(request.options),
                     .logprobs = std::move(request.logprobs)});
  const LengthFields fields{.prompt = from_ids ? "input_ids" : "messages"};
  Status fits = fit_to_context(prompts.front(), api.engine.options(), fields);
  if (fits.ok()) fits = check_prompt_tokens(prompts, "n");
  if (!fits.ok()) return refuse(api, *call.exchange, fits);
  auto writer = make_chat_answer(api, call.exchange, std::move(plan));
  auto generation = std::make_shared<Generation>(api, call.exchange, request.identity.rid,
                                                 call.received_ns, request.streaming.stream);
  const Status started =
      generation->start(make_sequences(std::move(prompts), request.identity), std::move(writer));
  if (!started.ok()) refuse(api, *call.exchange, started);
}

}  // namespace winnow::server
