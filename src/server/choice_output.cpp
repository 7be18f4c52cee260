#include "server/choice_output.h"

#include <utility>

namespace winnow::server {

ChoiceOutput::ChoiceOutput(const text::Tokenizer& tokenizer, OutputOptions options)
    : options_(std::move(options)),
      detokenizer_(tokenizer, options_.skip_special_tokens),
      stop_matcher_(options_.stop, options_.no_stop_trim) {}

void ChoiceOutput::append_text(std::string_view text, ChoiceDelta& delta) {
  text::StopMatcher::Output out = stop_matcher_.append(text);
  delta.text += out.text;
  if (!out.matched) return;
  matched_string_ = std::move(out.matched);
  finish_ = engine::FinishReason::kStop;
}

void ChoiceOutput::flush(ChoiceDelta& delta) {
  append_text(detokenizer_.finish(), delta);
  if (!matched_string_) delta.text += stop_matcher_.finish();
}

ChoiceDelta ChoiceOutput::append(engine::TokenEvent event) {
  ChoiceDelta delta;
  if (finished()) return delta;
  prompt_tokens_ = event.prompt_tokens;
  cached_tokens_ = event.cached_tokens;
  num_preemptions_ = event.num_preemptions;
  delta.prompt_logprobs = std::move(event.prompt_logprobs);
  for (size_t i = 0; i < event.ids.size(); ++i) {
    const int32_t id = event.ids[i];
    ++completion_tokens_;
    delta.ids.push_back(id);
    if (i < event.logprobs.size()) delta.logprobs.push_back(std::move(event.logprobs[i]));
    const bool stop_token = event.matched_stop_id && i + 1 == event.ids.size();
    if (stop_token && !options_.no_stop_trim) continue;
    append_text(detokenizer_.append({&id, 1}), delta);
    if (finished()) return delta;
  }
  if (event.finish == engine::FinishReason::kNone) return delta;
  flush(delta);
  if (finished()) return delta;
  finish_ = event.finish;
  matched_id_ = event.matched_stop_id;
  error_ = std::move(event.error);
  return delta;
}

}  // namespace winnow::server
