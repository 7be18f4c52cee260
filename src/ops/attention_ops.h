// Arguments of the attention and indexer ops. "act" is the backend's activation dtype.
// T rows, H heads, C kv_lora_rank, R qk_rope_head_dim, N qk_nope_head_dim, V v_head_dim,
// Hi index_n_heads, D index_head_dim, K index_topk. Formulas: the model's papers, restated in
// docs/life_of_a_token.md.
#pragma once

#include <cstdint>

#include "layout/kv_layout.h"
#include "ops/weights.h"

namespace winnow::ops {

// The rows of one step. Every row stands alone: (token, position, sequence).
struct BatchRows {
  int32_t num_rows = 0;
  int32_t num_seqs = 0;
  const int32_t* token_ids = nullptr;  // [T]
  const int32_t* positions = nullptr;  // [T] absolute; the row sees tokens 0..position
  const int32_t* write_slots =
      nullptr;                          // [T] where the row's keys go; -1: nowhere (already cached)
  const int32_t* seq_of_row = nullptr;  // [T] row of page_tables
  const int32_t* page_tables =
      nullptr;  // [num_seqs, page_table_stride] page ids; unused = any value
  int64_t page_table_stride = 0;
};

struct LatentCache {
  void* data = nullptr;  // [num_pages] pages, page_stride_bytes apart
  layout::LatentGeometry geometry;
  int64_t page_stride_bytes = 0;  // >= geometry.page_bytes()
  int32_t num_pages = 0;
  float scale = 1.0f;  // kFp8_576 only: value = e4m3 * scale
};

struct IndexKeyCache {
  void* data = nullptr;
  layout::IndexKeyGeometry geometry;
  int64_t page_stride_bytes = 0;
  int32_t num_pages = 0;
};

// cos and sin of position * frequency, fp32, amplitude included.
struct RopeTable {
  const float* cos = nullptr;  // [max_positions, R / 2]
  const float* sin = nullptr;  // [max_positions, R / 2]
  int32_t dim = 0;             // R
};

// Latent row: [rms_norm(kv[:C]) | rope(kv[C:])], interleaved pairs, quantised, stored.
struct AppendLatentArgs {
  const BatchRows* rows = nullptr;
  const void* kv = nullptr;            // act [T, C + R], the kv_a projection
  const float* norm_weight = nullptr;  // [C]
  float norm_eps = 0;
  RopeTable rope;
  LatentCache cache;
};

// q_latent[t][h] = q_nope[t][h] * W_uk[h]; q_rope = rope(q's last R), interleaved pairs.
struct AbsorbQueryArgs {
  const BatchRows* rows = nullptr;
  const void* q = nullptr;  // act [T, H, N + R]
  LinearWeight w_uk;        // [H * C, N]: per head the transpose of kv_b's nope rows
  RopeTable rope;
  int32_t num_heads = 0;
  int32_t qk_nope_head_dim = 0;
  void* q_latent = nullptr;  // act [T, H, C]
  void* q_rope = nullptr;    // act [T, H, R]
};

enum class IndexFormat : uint8_t { kF32, kBf16, kFp8 };

// How index queries and keys are rotated and rounded.
struct IndexerNumerics {
  bool rope_interleave = true;  // false: half-split pairs (i, i + R / 2)
  bool hadamard = false;        // multiply by H_D * D^-0.5 before rounding (D a power of two)
  bool ue8m0_scales = false;    // fp8 scales rounded up to powers of two
  IndexFormat query_format = IndexFormat::kF32;
};

// Rope on the first R dims of each head, Hadamard, rounding;
// head_weights = gate * Hi^-0.5 * D^-0.5 * (fp8 scale of the head's query).
struct IndexQueryArgs {
  const BatchRows* rows = nullptr;
  const void* q = nullptr;       // act [T, Hi, D]
  const float* gates = nullptr;  // [T, Hi] fp32 weights_proj output
  RopeTable rope;
  IndexerNumerics numerics;
  int32_t index_n_heads = 0;
  int32_t index_head_dim = 0;
  void* q_out = nullptr;          // [T, Hi, D] in query_format
  float* head_weights = nullptr;  // [T, Hi]
};

// LayerNorm (weight, bias, eps 1e-6), rope on the first R dims, Hadamard, rounding, stored.
struct AppendIndexKeyArgs {
  const BatchRows* rows = nullptr;
  const void* k = nullptr;             // act [T, D]
  const float* norm_weight = nullptr;  // [D]
  const float* norm_bias = nullptr;    // [D]
  float norm_eps = 1e-6f;
  RopeTable rope;
  IndexerNumerics numerics;
  IndexKeyCache cache;
};

// logits[t][s] = sum_h relu(q[t][h] . k[s]) * head_weights[t][h] (times the key's scale),
// for key_begin <= s < min(key_end, position + 1); -inf for the rest of [key_begin, key_end).
struct IndexLogitsArgs {
  const BatchRows* rows = nullptr;
  const void* q = nullptr;  // [T, Hi, D] in query_format
  IndexFormat query_format = IndexFormat::kF32;
  const float* head_weights = nullptr;  // [T, Hi]
  int32_t index_n_heads = 0;
  IndexKeyCache cache;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  float* logits = nullptr;  // [T, logits_stride], column 0 is key_begin
  int64_t logits_stride = 0;
};

// The K best of logits per row by the contract: larger first, equal scores (-0 == +0) lower
// position first, NaN as -inf (but NaN and -inf still count as candidates when fewer than K are
// left). slots in position order, then -1. lens = min(position + 1, K).
struct TopkArgs {
  const BatchRows* rows = nullptr;
  const float* logits = nullptr;  // [T, logits_stride], column s is token s of the row's sequence
  int64_t logits_stride = 0;
  int32_t page_size = 64;
  int32_t topk = 0;
  int32_t* slots = nullptr;  // [T, K]
  int32_t* lens = nullptr;   // [T]
};

// Index logits and top-k in one, in bounded memory. Rows with position + 1 <= K take every token
// and need no logits.
struct SelectTokensArgs {
  const BatchRows* rows = nullptr;
  const void* q = nullptr;
  IndexFormat query_format = IndexFormat::kF32;
  const float* head_weights = nullptr;  // [T, Hi]
  int32_t index_n_heads = 0;
  IndexKeyCache cache;
  int32_t topk = 0;
  int32_t* slots = nullptr;  // [T, K]
  int32_t* lens = nullptr;   // [T]
};

// out[t][h] = sum_j softmax_j(scale * (q_latent . c_j + q_rope . k_j)) * c_j over the row's slots.
// Entries of -1 and slots beyond the pool are skipped wherever they stand; a row without any entry
// gives zeros and lse = -inf.
struct SparseMlaArgs {
  const BatchRows* rows = nullptr;
  const void* q_latent = nullptr;  // act [T, H, C]
  const void* q_rope = nullptr;    // act [T, H, R]
  const int32_t* slots = nullptr;  // [T, slots_stride]
  const int32_t* lens = nullptr;   // [T] entries to read, 0..slots_stride
  int64_t slots_stride = 0;
  int32_t num_heads = 0;
  float softmax_scale = 0;
  LatentCache cache;
  void* out = nullptr;   // act [T, H, C]
  float* lse = nullptr;  // [T, H] natural log, or null
};

// The same over all tokens 0..position of the row's page table: families without an indexer.
struct DenseMlaArgs {
  const BatchRows* rows = nullptr;
  const void* q_latent = nullptr;
  const void* q_rope = nullptr;
  int32_t num_heads = 0;
  float softmax_scale = 0;
  LatentCache cache;
  void* out = nullptr;
  float* lse = nullptr;
};

// out[t][h] = latent[t][h] * W_uv[h]^T.
struct UpProjectArgs {
  int32_t num_rows = 0;
  const void* latent = nullptr;  // act [T, H, C]
  LinearWeight w_uv;             // [H * V, C]
  int32_t num_heads = 0;
  void* out = nullptr;  // act [T, H * V]
};

// num_tokens rows of one page to another, latent or index keys, scales included: the partial page
// at the end of an exact prefix hit (fault B40: both pools must be copied).
struct CopyLatentArgs {
  LatentCache cache;
  int32_t from_slot = 0;  // slots of one page each; the tokens lie one behind the other
  int32_t to_slot = 0;
  int32_t num_tokens = 0;
};
struct CopyIndexKeysArgs {
  IndexKeyCache cache;
  int32_t from_slot = 0;
  int32_t to_slot = 0;
  int32_t num_tokens = 0;
};

}  // namespace winnow::ops
