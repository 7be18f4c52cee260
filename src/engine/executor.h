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
  int32_t sequence_idx = 0;              // slot of the engine's table, stable while it runs
  const GenerateRequest* request = nullptr;
  std::span<const int32_t> tokens;       // the whole sequence so far: prompt and generated
  int32_t start = 0;                     // position of the first row
  int32_t num_tokens = 0;                // rows; >= 1
  int32_t write_from = 0;                // rows at positions below it append nothing (full hit)
  std::span<const int32_t> pages;        // page ids in position order, covers start + num_tokens
  bool sample = false;                   // the last row is the newest token: sample the next
  int64_t prompt_logprobs_from = -1;     // score prompt tokens of these rows from here; -1 = none
};

struct BatchPlan {
  std::vector<SequenceSlice> slices;
  int32_t num_rows = 0;
};

// Results for slices with sample set, in slice order (others stay empty).
struct SliceResult {
  std::vector<int32_t> ids;                   // 1 to 8 new tokens
  std::vector<TokenLogprob> logprobs;         // one for each of ids when asked for
  std::vector<TokenLogprob> prompt_logprobs;  // for the scored prompt rows of this slice
  Status error;                               // this sequence alone failed (NaN logits, fault B74)
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Throws Error when the device is lost: the engine then fails every request and stops.
  // results: resized to plan.slices.size(); its memory is reused from step to step.
  virtual void run(const BatchPlan& plan, std::vector<SliceResult>& results) = 0;
  // Copies num_tokens cached tokens between two pages in every pool (latent and index keys).
  virtual void copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) = 0;
  // EOS ids of the model.
  virtual std::span<const int32_t> eos_ids() const = 0;
};

}  // namespace winnow::engine
