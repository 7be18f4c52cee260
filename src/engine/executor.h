// What a step computes, behind an interface: the model's runner, or a script that delivers given
// ids (tests of stop, usage, UTF-8, streaming and parsers need no model).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace winnow::engine {

// One sequence's share of a step: tokens [start, start + num_tokens) of it become rows.
struct SequenceSlice {
  int32_t sequence_idx = 0;  // slot, < max_running_requests, the same while it runs
  const GenerateRequest* request = nullptr;
  std::span<const int32_t> tokens;  // the whole sequence so far: prompt and generated
  int32_t start = 0;                // position of the first row
  int32_t num_tokens = 0;           // rows; >= 1
  int32_t write_from = 0;           // rows at positions below it append nothing (full hit)
  std::span<const int32_t> pages;   // page ids in position order, covers start + num_tokens
  bool sample = false;              // the last row is the newest token: sample the next
  // Score prompt tokens at positions >= this (>= 1); -1 = none. Row p gives the log-prob of token
  // p + 1, so this slice scores positions [max(from, start + 1), min(start + num_tokens + 1,
  // prompt_ids.size())), possibly none.
  int64_t prompt_logprobs_from = -1;
};

// At most max_running_requests slices. Rows: at most chunked_prefill_size of prompts, and of each
// decoding sequence as many as its last step gave ids.
struct BatchPlan {
  std::vector<SequenceSlice> slices;
  int32_t num_rows = 0;
};

// Results for slices with sample set, in slice order (others stay empty).
struct SliceResult {
  std::vector<int32_t> ids;                   // 1 to 8 new tokens
  std::vector<TokenLogprob> logprobs;         // one for each of ids when asked for
  std::vector<TokenLogprob> prompt_logprobs;  // one for each scored position, in order
  Status error;                               // this sequence alone failed (NaN logits, fault B74)
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Throws Error when the device is lost: the engine then fails every request and stops.
  // results: one for each slice, every field to be set anew; their memory is reused from step to
  // step, logprobs are moved out.
  virtual void run(const BatchPlan& plan, std::span<SliceResult> results) = 0;
  // Copies the first num_tokens tokens between two pages in every pool (latent and index keys).
  // Copies come before the run of their step, and take effect in the order of the calls.
  virtual void copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) = 0;
  // EOS ids of the model.
  virtual std::span<const int32_t> eos_ids() const = 0;
};

}  // namespace winnow::engine
