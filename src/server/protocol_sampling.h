// The request fields that every generating endpoint has, read and checked (ranges: serving limits
// in limits.h, sampling values as SGLang documents them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "server/generation.h"
#include "server/limits.h"
#include "server/protocol_reader.h"
#include "server/server_config.h"

namespace winnow::server {

struct GenerationOptions {
  engine::SamplingParams sampling;           // max_new_tokens is set by fit_to_context
  std::optional<int64_t> max_new_tokens;     // as asked for
  int64_t usual_new_tokens = kMaxNewTokens;  // where nothing is asked, at most what fits
  OutputOptions output;
  int32_t n = 1;
};

// temperature, top_p, ..., stop, logit_bias, n; and refuses grammars, which are not there yet.
void read_sampling(ObjectReader& reader,
                   const SamplingDefaults& defaults,
                   int64_t vocab_size,
                   GenerationOptions& options);
// min_name, seed_name: the two fields that the formats spell differently.
void read_min_and_seed(ObjectReader& reader,
                       std::string_view min_name,
                       std::string_view seed_name,
                       GenerationOptions& options);

// rid, cache_salt, extra_key; user and priority, which have no effect; and refuses lora_path and
// other things that would change the answer.
struct RequestIdentity {
  std::string rid;  // made up where the client gives none
  std::string cache_namespace;
};
RequestIdentity read_identity(ObjectReader& reader);

// Refuses everything but text.
void read_response_format(ObjectReader& reader);

// One prompt, ready to become n sequences.
struct PromptRequest {
  std::vector<int32_t> ids;
  GenerationOptions options;
  engine::LogprobOptions logprobs;
};

// What an endpoint calls the fields that lengths are refused for.
struct LengthFields {
  std::string prompt;
  std::string max_tokens = "max_tokens";
  std::string min_tokens = "min_tokens";
};

// kInvalidArgument where prompt and answer cannot fit the context, the prompt the cache, or the
// answer its least length; else sets max_new_tokens.
Status fit_to_context(PromptRequest& prompt,
                      const engine::EngineOptions& engine,
                      const LengthFields& fields);

// kInvalidArgument, naming the field, where the choices of all prompts hold too many tokens.
Status check_prompt_tokens(const std::vector<PromptRequest>& prompts, const std::string& n_field);

// kInvalidArgument, naming the field, where the log-probs of all prompts are more than an answer
// may hold.
Status check_prompt_logprobs(const std::vector<PromptRequest>& prompts, const std::string& field);

// Prompt-major: sequence i belongs to prompt i / n. Sequences of a request with several get
// "<rid>_<i>".
std::vector<SequencePlan> make_sequences(std::vector<PromptRequest> prompts,
                                         const RequestIdentity& identity);

}  // namespace winnow::server
