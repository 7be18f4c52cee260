// The next token from one row of fp32 logits. A row's outcome depends on its logits, its request
// and its own tokens, never on what else is in the batch.
//
// Order of operations:
//  1. A NaN or +inf among the raw logits, or no finite one, is an error of the request (fault B74).
//  2. Penalties, over generated tokens only, the prompt not counted (as SGLang does; Hugging Face
//     and vLLM count the prompt for repetition_penalty): subtract frequency_penalty * count, then
//     presence_penalty if it occurred, then divide a logit >= 0 by repetition_penalty or multiply
//     one < 0.
//  3. While fewer than min_new_tokens are generated, ids that would stop the request are excluded.
//  4. logit_bias is added.
//  5. temperature < 1e-6 or top_k 1: the largest logit, ties to the lowest id.
//  6. Else p = softmax(logits / temperature). Order all tokens by falling p, ties by rising id.
//     A token stays if it is among the first top_k, and if the tokens before it have together less
//     than top_p (so the one that crosses stays), and if p >= min_p * max(p): the three filters
//     look at the same unfiltered p ("joint"), and the first token always stays.
//  7. One draw among those that stay, by Philox at (seed, choice, position of the new token).
//
// Log-probs are log-softmax of the raw logits, before all of the above.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/request.h"

namespace winnow::engine {

// Holds scratch memory: one for each thread that samples.
class Sampler {
 public:
  Sampler(int32_t vocab_size, std::vector<int32_t> eos_ids);

  // logits: [vocab_size]. tokens: prompt and generated so far; the new token's position is its
  // size. request.sampling.seed must be set unless the request is greedy (the engine sees to it).
  Result<int32_t> sample(std::span<const float> logits,
                         const GenerateRequest& request,
                         std::span<const int32_t> tokens);

  // The log-prob of an id, with the alternatives that the options ask for.
  Result<TokenLogprob> score(std::span<const float> logits,
                             int32_t id,
                             const LogprobOptions& options);

 private:
  struct Candidate {
    int32_t id;
    float weight;
  };
  // The last token that stays, in the order of filter 6: those of a larger logit stay, and those of
  // the same logit up to this id.
  struct Cut {
    float logit;
    int32_t id;
  };
  static constexpr Cut kNoCut{-std::numeric_limits<float>::infinity(), -1};

  std::span<const float> adjust(std::span<const float> logits,
                                const GenerateRequest& request,
                                std::span<const int32_t> generated);
  void apply_penalties(const SamplingParams& sampling, std::span<const int32_t> generated);
  void exclude_stops(const SamplingParams& sampling);
  int32_t draw(std::span<const float> logits, float peak, const SamplingParams& sampling, double u);
  int32_t draw_from_all(double u);
  void filter(std::span<const float> logits,
              float peak,
              float scale,
              const SamplingParams& sampling);
  void gather(float min_weight);
  void gather_heavy(double total, const SamplingParams& sampling);
  Cut find_cut(std::span<const float> logits,
               float peak,
               float scale,
               double total,
               const SamplingParams& sampling);
  int32_t draw_from_candidates(double u) const;

  const int32_t vocab_size_;
  const std::vector<int32_t> eos_ids_;
  std::vector<float> adjusted_;      // [vocab_size]
  std::vector<float> weights_;       // [vocab_size], 1 for the largest logit
  std::vector<int32_t> counts_;      // [vocab_size], zero between calls
  std::vector<double> block_sums_;   // of weights_
  std::vector<int32_t> bin_counts_;  // tokens by log weight, the heaviest first
  std::vector<double> bin_sums_;
  std::vector<int32_t> heavy_;    // ids above some weight, rising
  std::vector<int32_t> bin_ids_;  // of the bin in which the cut falls
  std::vector<Candidate> candidates_;
};

}  // namespace winnow::engine
