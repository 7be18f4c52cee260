// The executor that runs the model: rows through the decoder, logits through the sampler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/sampler.h"
#include "kv/kv_storage.h"
#include "model/decoder.h"
#include "model/step_rows.h"

namespace winnow::engine {

class ModelExecutor final : public Executor {
 public:
  // Allocates the cache (options.num_pages pages) and all workspace. Keeps references to the
  // config, the weights and the backend. Throws Error when memory does not suffice.
  ModelExecutor(const EngineOptions& options,
                const model::ModelConfig& config,
                const model::Numerics& numerics,
                const model::ModelWeights& weights,
                ops::Backend& backend);

  void run(const BatchPlan& plan, std::span<SliceResult> results) override;
  void copy_tokens(int32_t from_page, int32_t to_page, int32_t num_tokens) override;
  std::span<const int32_t> eos_ids() const override { return config_.eos_token_ids; }

  int64_t cache_bytes() const { return storage_.allocated_bytes(); }
  int64_t workspace_bytes() const { return decoder_.workspace_bytes(); }

 private:
  // A row of the step whose logits are wanted, and what for.
  struct Wanted {
    int32_t row = 0;
    int32_t slice = 0;
    int32_t scored_token = -1;  // prompt token whose log-prob this row gives; -1 = sample
  };

  // What came of a wanted row.
  struct Outcome {
    Status error;
    int32_t id = -1;           // sampled
    TokenLogprob scores = {};  // of scored_token, or of id when asked for
  };

  void collect_wanted(const SequenceSlice& slice, int32_t slice_idx, int32_t first_row);
  void consume_logits(const BatchPlan& plan, std::span<SliceResult> results);
  static void consume_row(std::span<const float> logits,
                          const Wanted& wanted,
                          const SequenceSlice& slice,
                          Sampler& sampler,
                          Outcome& outcome);
  static void add_outcome(const Wanted& wanted,
                          const GenerateRequest& request,
                          Outcome& outcome,
                          SliceResult& result);

  const model::ModelConfig& config_;
  ops::Backend& backend_;
  const kv::CachePlan cache_plan_;
  const int32_t vocab_size_;
  model::Decoder decoder_;
  kv::KvStorage storage_;
  model::StepRows rows_;
  std::vector<Sampler> samplers_;  // one for each host thread
  std::vector<Wanted> wanted_;
  std::vector<int32_t> row_idx_;
  std::vector<Outcome> outcomes_;   // of the rows of one lm_head call
  std::vector<float> host_logits_;  // unused where the backend's memory is the host's
};

}  // namespace winnow::engine
