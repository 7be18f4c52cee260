// What crosses the border between the API side and the engine: plain data, checked beforehand.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace winnow::engine {

struct SamplingParams {
  int64_t max_new_tokens = 128;  // >= 0; 0 = prefill only
  int64_t min_new_tokens = 0;
  float temperature = 1.0f;  // 0 = greedy
  float top_p = 1.0f;        // (0, 1]
  int32_t top_k = -1;        // -1 = all
  float min_p = 0.0f;        // [0, 1]
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  float repetition_penalty = 1.0f;
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::vector<int32_t> stop_token_ids = {};  // beside the model's EOS ids
  bool ignore_eos = false;  // the model's EOS ids do not stop; stop_token_ids still do
  // The same seed gives the same tokens whatever the batch. Without one the engine draws one for
  // each request, so executors always find it set.
  std::optional<uint64_t> seed = {};
};

struct LogprobOptions {
  bool output = false;                  // of each generated token, from raw logits
  int32_t top = 0;                      // alternatives a token
  std::vector<int32_t> token_ids = {};  // these tokens' log-probs as well
  int64_t prompt_start = -1;            // first prompt token to score; -1 = none
};

struct GenerateRequest {
  std::string rid;                  // unique among live requests
  std::vector<int32_t> prompt_ids;  // not empty, ids < vocab_size
  SamplingParams sampling;
  LogprobOptions logprobs;
  int32_t choice = 0;           // enters the random stream: n choices of one seed differ
  std::string cache_namespace;  // prefixes are shared only inside one namespace
};

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;                                 // NaN: the first prompt token has none
  std::vector<std::pair<int32_t, float>> top;        // best first
  std::vector<std::pair<int32_t, float>> requested;  // LogprobOptions::token_ids
};

enum class FinishReason { kNone, kStop, kLength, kAbort, kError };

// What one step added to one request. Joined, the events are the whole answer.
struct TokenEvent {
  std::vector<int32_t> ids;                   // 1 to 8 with speculation; empty on a bare finish
  std::vector<TokenLogprob> logprobs;         // one for each of ids when asked for
  std::vector<TokenLogprob> prompt_logprobs;  // once, with the first event
  FinishReason finish = FinishReason::kNone;
  std::optional<int32_t> matched_stop_id;  // kStop: the id that stopped it (last of ids)
  Status error;                            // kError and kAbort: why
  // Running totals.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, from the prefix cache, at first admission
  int64_t completion_tokens = 0;
  int32_t num_preemptions = 0;
};

// Gets a request's events on the engine thread: must not block. After the one event with a finish
// reason nothing more comes.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void on_event(TokenEvent event) = 0;
};

}  // namespace winnow::engine
