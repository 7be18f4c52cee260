// Pieces of JSON that chat and text completions have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/choice_output.h"
#include "text/tokenizer.h"

namespace winnow::server {

struct Usage {
  int64_t prompt_tokens = 0;  // once for each prompt, however many choices it has
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;  // over all choices
  int64_t reasoning_tokens = 0;
};

// {"prompt_tokens":...}; cached tokens only with --enable-cache-report and where there are some.
void append_usage(std::string& out, const Usage& usage, bool cache_report);

// "stop", "length", "abort"; null while running. With the quotes.
std::string_view finish_reason_json(engine::FinishReason reason);
// The stop string, the stop token's id, or null.
void append_matched_stop(std::string& out, const ChoiceOutput& output);

// {"token":...,"logprob":...,"bytes":[...],"top_logprobs":[...]}
void append_chat_logprob(std::string& out,
                         const text::Tokenizer& tokenizer,
                         const engine::TokenLogprob& logprob);

// The text of one token, half characters as U+FFFD.
std::string token_text(const text::Tokenizer& tokenizer, int32_t id);
// JSON number, or null for NaN.
void append_logprob_value(std::string& out, float logprob);

// The fields of streaming requests: stream, stream_options.
struct StreamOptions {
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
};
class ObjectReader;
StreamOptions read_stream_options(ObjectReader& reader, bool include_usage_by_default);

}  // namespace winnow::server
