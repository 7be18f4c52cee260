// All scratch memory of the CPU backend, sized once in prepare(): ops never allocate. Ops with more
// rows than fit work through them in chunks, which changes no bits.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"

namespace winnow::backends {

// Rows that one pass over a weight serves at most.
inline constexpr int64_t kRowChunk = 512;
// Cached tokens that attention gathers at a time. Part of the arithmetic: the softmax is rescaled
// between groups, so changing it changes bits.
inline constexpr int64_t kTokenGroup = 64;
// Keys that the indexer transposes at a time (no influence on bits).
inline constexpr int64_t kKeyTile = 64;

struct ThreadScratch {
  std::vector<float> linear;   // decoded weights and partial sums
  std::vector<float> latents;  // [kTokenGroup, C + R]
  std::vector<float> query;    // [H, C + R]
  std::vector<float> scores;   // [H, kTokenGroup]
  std::vector<float> softmax;  // [H, 2] running maximum and sum
  std::vector<float> output;   // [H, C]
  std::vector<float> keys;     // [D, kKeyTile]
  std::vector<int32_t> slots;  // [kTokenGroup]
};

struct Workspace {
  ops::ModelShape shape;
  bool prepared = false;
  std::vector<float> x_codes;           // [rows, in] activations rounded to e4m3, as values
  std::vector<float> x_scales;          // [rows, ceil(in / 128)]
  std::vector<float> hidden;            // [rows, I] of a feed-forward block, twice
  std::vector<float> gathered;          // [kRowChunk, hidden_size] rows of one expert
  std::vector<float> expert_out;        // [kRowChunk, hidden_size]
  std::vector<float> router_scores;     // [kRowChunk, E]
  std::vector<float> index_queries;     // [rows, Hi, D]
  std::vector<float> index_logits;      // index_logits_budget_bytes
  std::vector<int32_t> rows_by_expert;  // [kRowChunk * k]
  std::vector<int32_t> expert_begin;    // [E + 1]
  std::vector<int32_t> logits_rows;     // [max_rows] rows that need index logits
  std::vector<ThreadScratch> threads;

  // Throws Error when the shape cannot be served.
  void size_for(const ops::ModelShape& shape, int num_threads);
};

}  // namespace winnow::backends
