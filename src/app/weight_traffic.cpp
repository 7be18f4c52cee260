#include "app/weight_traffic.h"

#include <algorithm>

#include "base/clock.h"
#include "layout/kv_layout.h"

namespace winnow::app {

namespace {

int64_t bytes_of(const ops::LinearWeight& weight) {
  const int64_t elements = weight.out_features * weight.in_features;
  int64_t bytes = elements * winnow::bytes_of(weight.dtype);
  if (weight.scale != nullptr) {
    bytes += 4 * layout::ceil_div(weight.out_features, layout::kScaleGroup) *
             layout::ceil_div(weight.in_features, layout::kScaleGroup);
  }
  return bytes;
}

int64_t bytes_of(const ops::MlpWeights& mlp) {
  return bytes_of(mlp.gate) + bytes_of(mlp.up) + bytes_of(mlp.down);
}

int64_t bytes_of(const model::LayerWeights& layer, int32_t num_experts_per_tok) {
  int64_t bytes = bytes_of(layer.q_a_proj) + bytes_of(layer.q_b_proj) +
                  bytes_of(layer.kv_a_proj_with_mqa) + bytes_of(layer.w_uk) + bytes_of(layer.w_uv) +
                  bytes_of(layer.o_proj);
  if (layer.indexer) {
    bytes += bytes_of(layer.indexer->wq_b) + bytes_of(layer.indexer->wk) +
             bytes_of(layer.indexer->weights_proj);
  }
  if (layer.mlp) bytes += bytes_of(*layer.mlp);
  if (layer.moe) {
    bytes += bytes_of(layer.moe->gate);
    bytes += num_experts_per_tok * bytes_of(layer.moe->experts.front());
    if (layer.moe->shared_experts) bytes += bytes_of(*layer.moe->shared_experts);
  }
  return bytes;
}

uint64_t sum_words(const uint64_t* words, size_t count) {
  // Eight independent chains: enough for the compiler to keep wide loads in flight.
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

int64_t weight_bytes_per_token(const model::ModelConfig& config,
                               const model::ModelWeights& weights) {
  int64_t bytes = bytes_of(weights.lm_head);
  for (const model::LayerWeights& layer : weights.layers) {
    bytes += bytes_of(layer, config.num_experts_per_tok);
  }
  return bytes;
}

namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr size_t kItemWords = size_t{1} << 17;
constexpr size_t kSumsApart = 8;

}  // namespace

ReadBandwidth::ReadBandwidth(ThreadPool& pool)
    : pool_(pool), words_(kBytes / 8, 1), sums_(kSumsApart * pool.num_threads()) {}

double ReadBandwidth::measure() {
  const SteadyClock clock;
  const int64_t begin = clock.now_ns();
  pool_.parallel_for(
      static_cast<int64_t>(words_.size() / kItemWords), [&](int64_t item, int thread_idx) {
        // Kept, so that the reads are not optimised away.
        sums_[kSumsApart * thread_idx] += sum_words(words_.data() + item * kItemWords, kItemWords);
      });
  return static_cast<double>(kBytes) * 1e9 / static_cast<double>(clock.now_ns() - begin);
}

}  // namespace winnow::app
