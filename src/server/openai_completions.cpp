// POST /v1/completions
#include <utility>

#include "server/endpoints.h"
#include "server/limits.h"
#include "server/openai_completions_answer.h"
#include "server/prompt_input.h"
#include "server/protocol_sampling.h"

namespace winnow::server {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;

struct CompletionRequest {
  RequestIdentity identity;
  CompletionAnswerPlan plan;
  std::vector<PromptRequest> prompts;
};

void read_logprobs(ObjectReader& reader,
                   const Api& api,
                   bool echo,
                   CompletionRequest& request,
                   engine::LogprobOptions& logprobs) {
  const auto top = reader.integer("logprobs", 0, std::min(kMaxTopLogprobs, api.config.vocab_size));
  request.plan.logprobs = top.has_value();
  logprobs.output = top.has_value();
  logprobs.top = static_cast<int32_t>(top.value_or(0));
  logprobs.prompt_start = echo && top ? 0 : -1;
}

Result<CompletionRequest> read_request(const json::Value& body, const Api& api) {
  ObjectReader reader(body);
  CompletionRequest request;
  CompletionAnswerPlan& plan = request.plan;
  plan.model = reader.string("model").value_or("default");
  request.identity = read_identity(reader);
  plan.id = request.identity.rid;
  plan.streaming = read_stream_options(reader, api.config.stream_include_usage);
  GenerationOptions options;
  options.usual_new_tokens = kDefaultMaxTokens;
  options.max_new_tokens = reader.integer("max_tokens", 0, kMaxNewTokens);
  read_sampling(reader, {}, api.config.vocab_size, options);
  read_min_and_seed(reader, "min_tokens", "seed", options);
  const bool echo = reader.boolean("echo", false);
  engine::LogprobOptions logprobs;
  read_logprobs(reader, api, echo, request, logprobs);
  reader.integer("best_of", 1, kMaxChoices);  // accepted, as SGLang does, and without effect
  reader.refuse("suffix");
  read_response_format(reader);
  for (const char* field : {"return_hidden_states", "return_token_ids"}) {
    if (reader.boolean(field, false)) reader.fail(field, "is not supported yet");
  }
  PromptInputs inputs = read_prompts(reader, "prompt", api);
  plan.num_prompts = static_cast<int32_t>(inputs.prompts.size());
  plan.choices_per_prompt = options.n;
  if (int64_t{plan.num_prompts} * options.n > kMaxSequences) {
    reader.fail("n", fmt::format("times the number of prompts must be at most {}, got {} x {}",
                                 kMaxSequences, options.n, plan.num_prompts));
  }
  if (!reader.ok()) return reader.status();
  for (PromptInput& input : inputs.prompts) {
    request.prompts.push_back(
        {.ids = std::move(input.ids), .options = options, .logprobs = logprobs});
    PromptRequest& prompt = request.prompts.back();
    const Status fits = fit_to_context(prompt, api.engine.options(), {.prompt = "prompt"});
    if (!fits.ok()) return fits;
    if (!echo) continue;
    const bool given_as_ids = input.text.empty();  // of a text there is at least one token
    plan.echo.push_back(given_as_ids ? api.tokenizer.decode(prompt.ids, true)
                                     : std::move(input.text));
  }
  if (Status fits = check_prompt_tokens(request.prompts, "n"); !fits.ok()) return fits;
  if (Status fits = check_prompt_logprobs(request.prompts, "logprobs"); !fits.ok()) return fits;
  return request;
}

}  // namespace

void completions(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kMustBeJson);
  if (!body) return;
  Result<CompletionRequest> read = read_request(*body, api);
  if (!read.ok()) return refuse(api, *call.exchange, read.status());
  CompletionRequest& request = read.value();
  const bool streaming = request.plan.streaming.stream;
  auto writer = make_completion_answer(api, call.exchange, std::move(request.plan));
  auto generation = std::make_shared<Generation>(api, call.exchange, request.identity.rid,
                                                 call.received_ns, streaming);
  const Status started = generation->start(
      make_sequences(std::move(request.prompts), request.identity), std::move(writer));
  if (!started.ok()) refuse(api, *call.exchange, started);
}

}  // namespace winnow::server
