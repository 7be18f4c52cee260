// One list of cases an op. The CPU tests run them against double-precision references; a CUDA test
// runs them against the CPU backend; a bench times them. A case is a description; make_*() turns it
// into host data by a seeded generator. Inputs are representable in bf16.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/kv_layout.h"
#include "ops/attention_ops.h"
#include "ops/backend.h"
#include "ops/token_ops.h"
#include "testing/paged_bytes.h"

namespace winnow::testing {

// ---- linear -------------------------------------------------------------------------------
struct LinearCase {
  std::string name;
  int64_t rows, in, out;
  DType dtype;
  bool fp8_activations = false;
};
struct StoredWeight {
  std::vector<uint8_t> bytes;
  std::vector<float> scale;
  DType dtype = DType::kF32;
  int64_t out = 0, in = 0;

  ops::LinearWeight view() const;
  double value(int64_t row, int64_t column) const;  // block scale included
};
std::vector<LinearCase> linear_cases();
StoredWeight make_weight(DType dtype, int64_t out, int64_t in, uint64_t seed);

// ---- sparse and dense MLA -----------------------------------------------------------------
enum class SlotPattern {
  kVisible,       // positions 0 .. len - 1
  kHolesBefore,   // 64 entries of -1, then the visible ones (fault B28 a)
  kNone,          // all -1 (B28 b)
  kHolesBetween,  // valid, -1, valid, .. (B28 c)
  kLastOnly,      // one valid entry at the last place (B28 d)
  kBeyondPool,    // valid entries mixed with slots past the pool
};
struct AttentionCase {
  std::string name;
  layout::LatentLayout layout;
  int32_t num_heads, kv_lora_rank, qk_rope_head_dim;
  int32_t page_size;
  int64_t padding_bytes;  // page stride beyond the page (fault B31)
  std::vector<SequenceRows> seqs;
  int32_t topk;  // width of the slot list
  SlotPattern pattern = SlotPattern::kVisible;
};
struct AttentionData {
  PagedRows rows;
  LatentBytes cache;
  std::vector<float> q_latent, q_rope;
  std::vector<int32_t> slots, lens;  // [T, topk], [T]
  float softmax_scale = 0;
};
std::vector<AttentionCase> attention_cases();
AttentionData make_attention(const AttentionCase& c, uint64_t page_seed = 1);

// ---- indexer ------------------------------------------------------------------------------
struct IndexCase {
  std::string name;
  layout::IndexKeyLayout layout;
  ops::IndexFormat query_format;
  int32_t index_n_heads, index_head_dim, qk_rope_head_dim;
  int32_t page_size;
  int64_t padding_bytes;
  std::vector<SequenceRows> seqs;
  int32_t topk;
  bool rope_interleave = true, hadamard = false, ue8m0 = false;
};
struct IndexData {
  PagedRows rows;
  IndexKeyBytes cache;
  std::vector<uint8_t> q;           // [T, Hi, D] in query_format
  std::vector<float> head_weights;  // [T, Hi]
};
std::vector<IndexCase> index_cases();
IndexData make_index(const IndexCase& c, uint64_t page_seed = 1);
// One query element without scale.
double query_value(const std::vector<uint8_t>& q, ops::IndexFormat format, int64_t at);

// ---- top-k --------------------------------------------------------------------------------
struct TopkCase {
  std::string name;
  int32_t topk;
  std::vector<std::vector<float>> scores;  // a row each; row t stands at position size - 1
};
std::vector<TopkCase> topk_cases();
// What the contract asks for: positions, ascending.
std::vector<int32_t> expected_topk(const std::vector<float>& scores, int32_t topk);

// ---- experts ------------------------------------------------------------------------------
struct RouterCase {
  std::string name;
  int64_t rows, hidden, experts;
  int32_t picks, n_group, topk_group;
  bool norm_topk_prob = true;
  float scaling = 2.5f;
  float bias_low = -0.1f, bias_high = 0.1f;  // evenly spaced over the experts, shuffled
};
std::vector<RouterCase> router_cases();

struct MoeCase {
  std::string name;
  int64_t rows, hidden, intermediate, experts;
  int32_t picks;
  DType dtype;
  bool fp8_activations = false;
  bool shared = true;
};
std::vector<MoeCase> moe_cases();

// A shape that covers every case above, for prepare().
ops::ModelShape case_shape();

}  // namespace winnow::testing
