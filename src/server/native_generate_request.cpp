#include "server/native_generate_request.h"

#include <unordered_set>
#include <utility>

#include "server/limits.h"
#include "server/prompt_input.h"

namespace winnow::server {
namespace {

constexpr int64_t kDefaultNewTokens = 128;

GenerationOptions read_sampling_params(ObjectReader& outer,
                                       const json::Value& value,
                                       std::string path,
                                       const Api& api) {
  ObjectReader reader(value, std::move(path));
  GenerationOptions options;
  // Here null says "fill the context"; only a missing key means the default.
  const json::Value* member = value.find("max_new_tokens");
  if (member == nullptr) options.usual_new_tokens = kDefaultNewTokens;
  options.max_new_tokens = reader.integer("max_new_tokens", 0, kMaxNewTokens);
  read_sampling(reader, {}, api.config.vocab_size, options);
  read_min_and_seed(reader, "min_new_tokens", "sampling_seed", options);
  reader.integer("stream_interval", 1, INT32_MAX);  // accepted: every step is streamed
  reader.refuse_unknown();
  if (!reader.ok()) outer.fail(reader.status());
  return options;
}

// One object for all prompts, or a list with one for each.
std::vector<GenerationOptions> read_all_sampling_params(ObjectReader& reader,
                                                        size_t num_prompts,
                                                        const Api& api) {
  const json::Value* value = reader.find("sampling_params");
  static const json::Value kEmpty = json::Object{};
  if (value == nullptr) value = &kEmpty;
  if (!value->is_array()) {
    return std::vector<GenerationOptions>(
        num_prompts, read_sampling_params(reader, *value, "sampling_params", api));
  }
  const json::Array& items = value->as_array();
  std::vector<GenerationOptions> all;
  if (items.size() != num_prompts) {
    reader.fail("sampling_params", fmt::format("must have one item for each of the {} prompts, "
                                               "got {}",
                                               num_prompts, items.size()));
    return all;
  }
  for (size_t i = 0; i < items.size() && reader.ok(); ++i) {
    all.push_back(
        read_sampling_params(reader, items[i], fmt::format("sampling_params[{}]", i), api));
    if (reader.ok() && all.back().n != all.front().n) {
      reader.fail("sampling_params", "must have the same n for every prompt");
    }
  }
  return all;
}

engine::LogprobOptions read_logprobs(ObjectReader& reader, const Api& api, NativeRequest& request) {
  engine::LogprobOptions logprobs;
  const int64_t vocab_size = api.config.vocab_size;
  request.return_logprob = reader.boolean("return_logprob", false);
  request.return_text_in_logprobs = reader.boolean("return_text_in_logprobs", false);
  const auto start = reader.integer("logprob_start_len", -1, INT64_MAX);
  const auto top = reader.integer("top_logprobs_num", 0, std::min(kMaxTopLogprobs, vocab_size));
  const auto ids = reader.ids("token_ids_logprob", kMaxLogprobTokenIds, vocab_size);
  if (!request.return_logprob) {
    for (const auto& [field, given] : {std::pair("top_logprobs_num", top.value_or(0) > 0),
                                       std::pair("token_ids_logprob", !ids.empty())}) {
      if (given) reader.fail(field, "needs return_logprob true");
    }
    return logprobs;
  }
  logprobs.output = true;
  logprobs.prompt_start = start.value_or(-1);
  logprobs.top = static_cast<int32_t>(top.value_or(0));
  logprobs.token_ids = ids;
  return logprobs;
}

PromptInputs read_inputs(ObjectReader& reader, const Api& api) {
  reader.refuse("input_embeds");
  reader.refuse("image_data", "is not supported: this model reads text only");
  reader.refuse("audio_data", "is not supported: this model reads text only");
  reader.refuse("video_data", "is not supported: this model reads text only");
  const bool text = reader.find("text") != nullptr;
  const bool ids = reader.find("input_ids") != nullptr;
  if (text && ids) reader.fail("input_ids", "and text cannot both be given");
  if (text) return read_text_prompts(reader, "text", api);
  if (ids) return read_id_prompts(reader, "input_ids", api);
  if (reader.ok()) reader.fail("text", "or input_ids must be given");
  return {};
}

// rid: a string for all, or a list with one for each prompt. The first of a list stands for the
// request; read_identity sees strings only.
std::vector<std::string> read_item_rids(ObjectReader& reader,
                                        json::Value& body,
                                        size_t num_prompts,
                                        int32_t n) {
  const json::Value* value = body.find("rid");
  if (value == nullptr || !value->is_array()) return {};
  std::vector<std::string> rids = reader.strings("rid", kMaxPrompts, kMaxRidBytes);
  std::unordered_set<std::string_view> distinct(rids.begin(), rids.end());
  if (reader.ok() && (rids.size() != num_prompts || n > 1)) {
    reader.fail("rid", "as a list needs one item for each prompt, and n 1");
  } else if (distinct.size() != rids.size() || distinct.count("") > 0) {
    reader.fail("rid", "must not repeat and not be empty");
  }
  return rids;
}

}  // namespace

Result<NativeRequest> read_native_request(const json::Value& original, const Api& api) {
  json::Value body = original;
  ObjectReader reader(original);
  NativeRequest request;
  PromptInputs inputs = read_inputs(reader, api);
  const std::vector<GenerationOptions> options =
      read_all_sampling_params(reader, inputs.prompts.size(), api);
  if (!reader.ok()) return reader.status();
  const int32_t n = options.front().n;
  request.item_rids = read_item_rids(reader, body, inputs.prompts.size(), n);
  if (!request.item_rids.empty()) body.set("rid", request.item_rids.front());
  ObjectReader identity_reader(body);
  request.identity = read_identity(identity_reader);
  if (!identity_reader.ok()) reader.fail(identity_reader.status());
  request.batch = inputs.batch || n > 1;
  request.stream = reader.boolean("stream", false);
  const engine::LogprobOptions logprobs = read_logprobs(reader, api, request);
  request.return_prompt_token_ids = reader.boolean("return_prompt_token_ids", false);
  for (const char* field : {"return_hidden_states", "return_routed_experts"}) {
    if (reader.boolean(field, false)) reader.fail(field, "is not supported yet");
  }
  if (static_cast<int64_t>(inputs.prompts.size()) * n > kMaxSequences) {
    reader.fail("sampling_params.n",
                fmt::format("times the number of prompts must be at most {}", kMaxSequences));
  }
  const LengthFields fields{.prompt = original.find("text") != nullptr ? "text" : "input_ids",
                            .max_tokens = "sampling_params.max_new_tokens",
                            .min_tokens = "sampling_params.min_new_tokens"};
  for (size_t i = 0; i < inputs.prompts.size() && reader.ok(); ++i) {
    PromptRequest prompt{
        .ids = std::move(inputs.prompts[i].ids), .options = options[i], .logprobs = logprobs};
    const auto length = static_cast<int64_t>(prompt.ids.size());
    if (logprobs.prompt_start > length) {
      reader.fail("logprob_start_len", fmt::format("must be at most the prompt's {} tokens, got {}",
                                                   length, logprobs.prompt_start));
    }
    if (Status fits = fit_to_context(prompt, api.engine.options(), fields); !fits.ok()) {
      reader.fail(std::move(fits));
    }
    request.prompts.push_back(std::move(prompt));
  }
  if (Status fits = check_prompt_tokens(request.prompts, "sampling_params.n"); !fits.ok()) {
    reader.fail(std::move(fits));
  }
  if (Status fits = check_prompt_logprobs(request.prompts, "return_logprob"); !fits.ok()) {
    reader.fail(std::move(fits));
  }
  if (!reader.ok()) return reader.status();
  return request;
}

}  // namespace winnow::server
