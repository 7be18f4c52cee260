// A request inside the engine: its tokens, its pages and what it still owes to its sink.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/request.h"

namespace winnow::engine {

enum class SequenceState {
  kWaiting,     // holds nothing: new, or preempted
  kPrefilling,  // holds a slot and pages for all its tokens; rows go in chunks
  kDecoding,    // every token but the newest has its KV
  kEnded,
};

struct Sequence {
  uint64_t id = 0;  // order of arrival; older sequences are never preempted for younger ones
  GenerateRequest request;
  std::shared_ptr<TokenSink> sink;  // the scheduler never looks at it

  SequenceState state = SequenceState::kWaiting;
  int32_t slot = -1;            // SequenceSlice::sequence_idx while it runs
  std::vector<int32_t> tokens;  // prompt, then generated
  std::vector<int32_t> pages;   // in position order
  int32_t num_tree_pages = 0;   // the first of pages that the prefix cache holds as well
  int32_t kv_len = 0;           // positions below it have their KV in pages

  int64_t max_new_tokens = 0;  // the request's, lowered to what context and pool leave
  int64_t min_new_tokens = 0;
  bool was_admitted = false;
  int64_t cached_tokens = 0;  // of the prompt, at first admission
  int32_t num_preemptions = 0;
  int64_t next_prompt_logprob = -1;  // first prompt token still to be scored; -1 = none

  // Since the last event.
  bool is_updated = false;
  int64_t num_delivered = 0;  // generated tokens delivered before
  std::vector<TokenLogprob> logprobs;
  std::vector<TokenLogprob> prompt_logprobs;
  FinishReason finish = FinishReason::kNone;
  std::optional<int32_t> matched_stop_id;
  Status error;

  int64_t num_prompt() const { return static_cast<int64_t>(request.prompt_ids.size()); }
  int64_t num_generated() const { return static_cast<int64_t>(tokens.size()) - num_prompt(); }
};

// Appends what a step sampled, one token after the other, and stops at the first token that ends
// the sequence: tokens behind it are dropped, and a stop id wins over the length (fault B68).
// Sets finish and matched_stop_id. logprobs: empty, or one for each of ids.
void append_tokens(Sequence& sequence,
                   std::span<const int32_t> ids,
                   std::span<const int32_t> eos_ids,
                   std::span<TokenLogprob> logprobs);

// A stop id of the request, or an EOS id of the model unless ignore_eos, which leaves
// stop_token_ids alone (SGLang switches both off). The first min_new_tokens never count as stops.
bool is_stop_id(const SamplingParams& sampling, std::span<const int32_t> eos_ids, int32_t id);

}  // namespace winnow::engine
