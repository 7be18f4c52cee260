#include "app/weight_traffic.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

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

// Keeps the sums alive, so that the reads are not optimised away.
std::atomic<uint64_t> checksum;

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

double measure_read_bandwidth(int num_threads) {
  constexpr size_t kBytesPerThread = size_t{512} << 20;
  constexpr int kPasses = 5;
  std::vector<std::vector<uint64_t>> buffers(num_threads);
  for (auto& buffer : buffers) buffer.assign(kBytesPerThread / 8, 1);
  const SteadyClock clock;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<std::thread> threads;
    const int64_t begin = clock.now_ns();
    for (const auto& buffer : buffers) {
      threads.emplace_back([&buffer] { checksum += sum_words(buffer.data(), buffer.size()); });
    }
    for (std::thread& thread : threads) thread.join();
    const auto seconds = static_cast<double>(clock.now_ns() - begin) * 1e-9;
    best = std::max(best, static_cast<double>(kBytesPerThread) * num_threads / seconds);
  }
  return best;
}

}  // namespace winnow::app
