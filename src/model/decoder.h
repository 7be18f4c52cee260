// The one decoder of every family: rows in, logits out. Prefill, decode and mixed steps are the
// same call; families differ by what their config and weights say.
#pragma once

#include <cstdint>
#include <span>

#include "kv/kv_storage.h"
#include "model/config.h"
#include "model/numerics.h"
#include "model/rope_table.h"
#include "model/step_workspace.h"
#include "model/weights.h"
#include "ops/backend.h"

namespace winnow::model {

struct DecoderLimits {
  int32_t max_rows = 0;        // of one step
  int32_t max_logit_rows = 0;  // of one call of logits()
  int32_t max_context = 0;     // tokens of one sequence
};

// Looks at a step from inside: for winnow score and for comparing engines layer by layer.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // idx 0: the embedding; idx l + 1: after layer l; the last one after the final norm.
  // hidden: host [num_rows, hidden_size] fp32.
  virtual void on_hidden(int32_t idx, std::span<const float> hidden) = 0;
  // Of each layer that owns an indexer. slots: host [num_rows, index_topk], -1 padded.
  virtual void on_topk(int32_t layer, std::span<const int32_t> slots) = 0;
};

class Decoder {
 public:
  // Keeps references to all three. Throws Error when the backend cannot run this model.
  Decoder(const ModelConfig& config,
          const Numerics& numerics,
          const ModelWeights& weights,
          const kv::CachePlan& cache_plan,
          const DecoderLimits& limits,
          ops::Backend& backend);

  // Runs all layers over the rows and writes their keys into the storage.
  void forward(const ops::BatchRows& rows,
               const kv::KvStorage& storage,
               StepObserver* observer = nullptr);
  // Logits of some rows of the last forward. row_idx: [num_rows] in backend memory,
  // num_rows <= max_logit_rows. Returns [num_rows, vocab_size] fp32 in backend memory, valid until
  // the next call. Callable again for further rows.
  const float* logits(const int32_t* row_idx, int32_t num_rows);

  const DecoderLimits& limits() const { return limits_; }
  const ModelConfig& config() const { return config_; }
  int64_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  void run_feed_forward(int32_t layer, int32_t num_rows);
  void add_norm(int32_t num_rows, bool with_delta, const float* weight);
  void show_hidden(StepObserver& observer, int32_t idx, int32_t num_rows, bool with_delta);
  void show_topk(StepObserver& observer, int32_t layer, int32_t num_rows);

  const ModelConfig& config_;
  const Numerics numerics_;
  const ModelWeights& weights_;
  const DecoderLimits limits_;
  ops::Backend& backend_;
  RopeTables rope_;
  StepWorkspace workspace_;
};

// What this model asks of a backend.
ops::ModelShape shape_of(const ModelConfig& config,
                         const kv::CachePlan& cache_plan,
                         const Numerics& numerics,
                         const DecoderLimits& limits);

}  // namespace winnow::model
