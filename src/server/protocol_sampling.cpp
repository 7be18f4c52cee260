#include "server/protocol_sampling.h"

#include <charconv>
#include <cmath>

#include "server/limits.h"

namespace winnow::server {
namespace {

void read_number(ObjectReader& reader,
                 std::string_view key,
                 NumberRange range,
                 const std::optional<double>& fallback,
                 float& out) {
  const std::optional<double> given = reader.number(key, range);
  if (given) {
    out = static_cast<float>(*given);
  } else if (fallback) {
    out = static_cast<float>(*fallback);
  }
}

void read_top_k(ObjectReader& reader, const SamplingDefaults& defaults, int32_t& top_k) {
  const std::optional<int64_t> given = reader.integer("top_k", -1, INT32_MAX);
  if (given == 0) {
    reader.fail("top_k", "must be at least 1, or -1 for the whole vocabulary, got 0");
  } else if (given) {
    top_k = static_cast<int32_t>(*given);
  } else if (defaults.top_k) {
    top_k = static_cast<int32_t>(*defaults.top_k);
  }
}

void read_logit_bias(ObjectReader& reader, int64_t vocab_size, engine::SamplingParams& sampling) {
  const json::Object* entries = reader.object("logit_bias");
  if (entries == nullptr) return;
  if (static_cast<int64_t>(entries->size()) > kMaxLogitBias) {
    return reader.fail("logit_bias", fmt::format("must have at most {} entries, got {}",
                                                 kMaxLogitBias, entries->size()));
  }
  for (const auto& [key, value] : *entries) {
    int64_t id = -1;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool canonical = ec == std::errc() && end == key.data() + key.size() &&
                           std::to_string(id) == key;  // "1" and "01" would be two of one id
    if (!canonical || id < 0 || id >= vocab_size) {
      return reader.fail("logit_bias",
                         fmt::format("must have token ids between 0 and {} as keys, got \"{}\"",
                                     vocab_size - 1, key.substr(0, 40)));
    }
    if (!value.is_number() || !(std::abs(value.as_number()) <= kMaxLogitBiasValue)) {
      return reader.fail("logit_bias", fmt::format("must have numbers in [{}, {}] as values",
                                                   -kMaxLogitBiasValue, kMaxLogitBiasValue));
    }
    sampling.logit_bias.emplace_back(static_cast<int32_t>(id),
                                     static_cast<float>(value.as_number()));
  }
}

void read_stops(ObjectReader& reader, int64_t vocab_size, GenerationOptions& options) {
  options.output.stop = reader.strings("stop", kMaxStops, kMaxStopBytes);
  // An empty stop string would match before the first token.
  std::erase(options.output.stop, "");
  options.sampling.stop_token_ids = reader.ids("stop_token_ids", kMaxStops, vocab_size);
  options.sampling.ignore_eos = reader.boolean("ignore_eos", false);
  options.output.no_stop_trim = reader.boolean("no_stop_trim", false);
  options.output.skip_special_tokens = reader.boolean("skip_special_tokens", true);
  reader.boolean("spaces_between_special_tokens", true);  // byte-level tokenizers put none
  reader.refuse("stop_regex");
}

}  // namespace

void read_sampling(ObjectReader& reader,
                   const SamplingDefaults& defaults,
                   int64_t vocab_size,
                   GenerationOptions& options) {
  engine::SamplingParams& s = options.sampling;
  read_number(reader, "temperature", {0, kMaxTemperature}, defaults.temperature, s.temperature);
  read_number(reader, "top_p", {0, 1, true}, defaults.top_p, s.top_p);
  read_top_k(reader, defaults, s.top_k);
  read_number(reader, "min_p", {0, 1}, defaults.min_p, s.min_p);
  read_number(reader, "frequency_penalty", {-2, 2}, {}, s.frequency_penalty);
  read_number(reader, "presence_penalty", {-2, 2}, {}, s.presence_penalty);
  read_number(reader, "repetition_penalty", {kMinRepetitionPenalty, 2}, defaults.repetition_penalty,
              s.repetition_penalty);
  constexpr float kGreedyBelow = 1e-6f;
  if (s.temperature < kGreedyBelow) s.temperature = 0;
  read_logit_bias(reader, vocab_size, s);
  read_stops(reader, vocab_size, options);
  options.n = static_cast<int32_t>(reader.integer("n", 1, kMaxChoices).value_or(1));
  for (const char* grammar : {"json_schema", "regex", "ebnf", "structural_tag"}) {
    reader.refuse(grammar);
  }
  reader.refuse("custom_params");
}

void read_min_and_seed(ObjectReader& reader,
                       std::string_view min_name,
                       std::string_view seed_name,
                       GenerationOptions& options) {
  options.sampling.min_new_tokens = reader.integer(min_name, 0, kMaxNewTokens).value_or(0);
  const std::optional<int64_t> seed = reader.integer(seed_name, INT64_MIN, INT64_MAX);
  if (seed) options.sampling.seed = static_cast<uint64_t>(*seed);
}

RequestIdentity read_identity(ObjectReader& reader) {
  RequestIdentity identity;
  identity.rid = reader.string("rid", kMaxRidBytes).value_or("");
  if (identity.rid.empty()) identity.rid = random_id();
  const std::string extra_key = reader.string("extra_key", kMaxRidBytes).value_or("");
  const std::string cache_salt = reader.string("cache_salt", kMaxRidBytes).value_or("");
  if (!extra_key.empty() || !cache_salt.empty()) {
    identity.cache_namespace = fmt::format("{}:{}{}", extra_key.size(), extra_key, cache_salt);
  }
  reader.string("user");
  reader.integer("priority", INT32_MIN, INT32_MAX);
  for (const char* field : {"lora_path", "custom_logit_processor", "session_params"}) {
    reader.refuse(field);
  }
  return identity;
}

void read_response_format(ObjectReader& reader) {
  const json::Value* format = reader.find("response_format");
  if (format == nullptr) return;
  ObjectReader inner(*format, "response_format");
  const std::string type = inner.string("type").value_or("");
  if (inner.ok() && type != "text") {
    inner.fail("type",
               fmt::format("\"{}\" is not supported yet, only \"text\"", type.substr(0, 40)));
  }
  if (!inner.ok()) reader.fail(inner.status());
}

Status fit_to_context(PromptRequest& prompt,
                      const engine::EngineOptions& engine,
                      const LengthFields& fields) {
  const auto input = static_cast<int64_t>(prompt.ids.size());
  const int64_t context_length = engine.context_length;
  const int64_t cache_tokens = int64_t{engine.num_pages} * engine.page_size;
  GenerationOptions& options = prompt.options;
  if (input >= context_length) {
    return invalid_argument(fields.prompt,
                            "The input ({} tokens) is longer than the model's context length "
                            "({} tokens).",
                            input, context_length);
  }
  if (input > cache_tokens) {
    return invalid_argument(fields.prompt,
                            "The input ({} tokens) is longer than the server's KV cache ({} "
                            "tokens, --max-total-tokens).",
                            input, cache_tokens);
  }
  const int64_t room = context_length - input;
  if (options.max_new_tokens && *options.max_new_tokens > room) {
    return invalid_argument(fields.max_tokens,
                            "Requested token count exceeds the model's context length of {} "
                            "tokens: {} tokens in total, {} from the input and {} for the "
                            "completion.",
                            context_length, input + *options.max_new_tokens, input,
                            *options.max_new_tokens);
  }
  options.sampling.max_new_tokens =
      options.max_new_tokens.value_or(std::min(options.usual_new_tokens, room));
  if (options.sampling.min_new_tokens > options.sampling.max_new_tokens) {
    return invalid_argument(
        fields.min_tokens, "{} must be at most the {} tokens that the answer may have, got {}",
        fields.min_tokens, options.sampling.max_new_tokens, options.sampling.min_new_tokens);
  }
  return {};
}

Status check_prompt_tokens(const std::vector<PromptRequest>& prompts, const std::string& n_field) {
  int64_t total = 0;
  for (const PromptRequest& prompt : prompts) total += std::ssize(prompt.ids) * prompt.options.n;
  if (total <= kMaxPromptTokens) return {};
  return invalid_argument(n_field,
                          "{}: the prompts of all choices have {} tokens together; at most {}",
                          n_field, total, kMaxPromptTokens);
}

Status check_prompt_logprobs(const std::vector<PromptRequest>& prompts, const std::string& field) {
  int64_t total = 0;
  for (const PromptRequest& prompt : prompts) {
    const engine::LogprobOptions& wanted = prompt.logprobs;
    if (wanted.prompt_start < 0) continue;
    const int64_t per_token = 1 + wanted.top + std::ssize(wanted.token_ids);
    total += (std::ssize(prompt.ids) - wanted.prompt_start) * per_token * prompt.options.n;
  }
  if (total <= kMaxPromptLogprobs) return {};
  return invalid_argument(field,
                          "{} asks for {} log-probs of prompt tokens, choices and alternatives "
                          "counted; at most {}",
                          field, total, kMaxPromptLogprobs);
}

std::vector<SequencePlan> make_sequences(std::vector<PromptRequest> prompts,
                                         const RequestIdentity& identity) {
  std::vector<SequencePlan> plans;
  const bool several = prompts.size() > 1 || prompts.front().options.n > 1;
  for (PromptRequest& prompt : prompts) {
    for (int32_t choice = 0; choice < prompt.options.n; ++choice) {
      const bool last = choice + 1 == prompt.options.n;
      SequencePlan plan;
      plan.request.rid = several ? fmt::format("{}_{}", identity.rid, plans.size()) : identity.rid;
      plan.request.prompt_ids = last ? std::move(prompt.ids) : prompt.ids;
      plan.request.sampling = prompt.options.sampling;
      plan.request.logprobs = prompt.logprobs;
      plan.request.choice = choice;
      plan.request.cache_namespace = identity.cache_namespace;
      plan.output = prompt.options.output;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

}  // namespace winnow::server
