// POST, PUT /generate
#include <utility>

#include "server/endpoints.h"
#include "server/native_generate_answer.h"
#include "server/native_generate_request.h"

namespace winnow::server {

// Everything is checked before the first header: a refused stream is a 400, not a 200 with an
// error inside (where SGLang differs).
void native_generate(Api& api, Call& call) {
  std::optional<json::Value> body = read_body(api, call, ContentType::kAny);
  if (!body) return;
  Result<NativeRequest> read = read_native_request(*body, api);
  if (!read.ok()) return refuse(api, *call.exchange, read.status());
  NativeRequest& request = read.value();
  const engine::LogprobOptions& logprobs = request.prompts.front().logprobs;
  NativeAnswerPlan plan{.batch = request.batch,
                        .stream = request.stream,
                        .incremental = api.config.incremental_streaming_output,
                        .return_logprob = request.return_logprob,
                        .logprob_text = request.return_text_in_logprobs,
                        .top_logprobs = logprobs.top > 0,
                        .requested_logprobs = !logprobs.token_ids.empty(),
                        .prompt_ids = {},
                        .received_ns = call.received_ns};
  std::vector<SequencePlan> sequences =
      make_sequences(std::move(request.prompts), request.identity);
  plan.num_sequences = static_cast<int32_t>(sequences.size());
  for (size_t i = 0; i < request.item_rids.size(); ++i) {
    sequences[i].request.rid = request.item_rids[i];
  }
  if (request.return_prompt_token_ids) {
    for (const SequencePlan& s : sequences) plan.prompt_ids.push_back(s.request.prompt_ids);
  }
  auto writer = make_native_answer(api, call.exchange, std::move(plan));
  auto generation = std::make_shared<Generation>(api, call.exchange, request.identity.rid,
                                                 call.received_ns, request.stream);
  const Status started = generation->start(std::move(sequences), std::move(writer));
  if (!started.ok()) refuse(api, *call.exchange, started);
}

}  // namespace winnow::server
