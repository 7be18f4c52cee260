// The tokens of one choice on their way to text: stop strings, counts, log-probs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace winnow::server {

struct OutputOptions {
  std::vector<std::string> stop = {};  // over the whole generated text, reasoning included
  bool no_stop_trim = false;           // keeps the stop string, or the stop token's text
  bool skip_special_tokens = true;
};

// What one engine event adds.
struct ChoiceDelta {
  std::string text;          // safe to send: no half character, no part of a stop string
  std::vector<int32_t> ids;  // every token that counts, those of a stop string included
  std::vector<engine::TokenLogprob> logprobs;         // one for each of ids when asked for
  std::vector<engine::TokenLogprob> prompt_logprobs;  // with the first event
};

class ChoiceOutput {
 public:
  ChoiceOutput(const text::Tokenizer& tokenizer, OutputOptions options);

  // Once finished, later events change nothing. A stop string ends the choice in the middle of a
  // step: tokens of that step behind it are dropped, from the counts as well (fault B94).
  ChoiceDelta append(engine::TokenEvent event);

  bool finished() const { return finish_ != engine::FinishReason::kNone; }
  engine::FinishReason finish() const { return finish_; }
  // Finished by a stop string: the engine does not know yet.
  bool hit_stop_string() const { return matched_string_.has_value(); }
  const std::optional<std::string>& matched_string() const { return matched_string_; }
  const std::optional<int32_t>& matched_id() const { return matched_id_; }
  const Status& error() const { return error_; }

  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  int64_t completion_tokens() const { return completion_tokens_; }
  int32_t num_preemptions() const { return num_preemptions_; }

 private:
  void append_text(std::string_view text, ChoiceDelta& delta);
  void flush(ChoiceDelta& delta);

  const OutputOptions options_;
  text::Detokenizer detokenizer_;
  text::StopMatcher stop_matcher_;
  engine::FinishReason finish_ = engine::FinishReason::kNone;
  std::optional<std::string> matched_string_;
  std::optional<int32_t> matched_id_;
  Status error_;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t completion_tokens_ = 0;
  int32_t num_preemptions_ = 0;
};

}  // namespace winnow::server
