#include "engine/sequence.h"

#include <algorithm>
#include <utility>

namespace winnow::engine {

bool is_stop_id(const SamplingParams& sampling, std::span<const int32_t> eos_ids, int32_t id) {
  const auto& stops = sampling.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), id) != stops.end()) return true;
  return !sampling.ignore_eos && std::find(eos_ids.begin(), eos_ids.end(), id) != eos_ids.end();
}

void append_tokens(Sequence& sequence,
                   std::span<const int32_t> ids,
                   std::span<const int32_t> eos_ids,
                   std::span<TokenLogprob> logprobs) {
  for (size_t i = 0; i < ids.size() && sequence.finish == FinishReason::kNone; ++i) {
    const bool may_stop = sequence.num_generated() >= sequence.min_new_tokens;
    sequence.tokens.push_back(ids[i]);
    if (!logprobs.empty()) sequence.logprobs.push_back(std::move(logprobs[i]));
    if (may_stop && is_stop_id(sequence.request.sampling, eos_ids, ids[i])) {
      sequence.finish = FinishReason::kStop;
      sequence.matched_stop_id = ids[i];
    } else if (sequence.num_generated() >= sequence.max_new_tokens) {
      sequence.finish = FinishReason::kLength;
    }
  }
}

}  // namespace winnow::engine
