/* Winnow's kernels from C: sparse attention of DeepSeek-Sparse-Attention models over paged caches.
 *
 * Every function launches on a stream and returns a cudaError_t as int (0: fine). Nothing allocates,
 * waits, or reads device memory on the host, so every call can be captured in a CUDA graph. Pointers
 * are device memory unless a comment says otherwise.
 *
 * Words: T rows (queries of any sequences), H heads, Hi index heads, D index head width, K topk. A
 * page holds 64 tokens; a slot is page * 64 + offset. Row t sees tokens 0..positions[t] of its
 * sequence. Lengths and strides count elements unless they are called bytes.
 *
 * sm_90a cards (H100, H200): all of it. Other cards from sm_80 on: the functions marked "portable".
 */
#ifndef WINNOW_KERNELS_H
#define WINNOW_KERNELS_H

#include <stdint.h>

#if defined(__GNUC__)
#define WINNOW_KERNELS_API __attribute__((visibility("default")))
#else
#define WINNOW_KERNELS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a struct or a function changes; winnow_kernels_version() returns the library's. */
#define WINNOW_KERNELS_VERSION 2
WINNOW_KERNELS_API int32_t winnow_kernels_version(void);

typedef struct CUstream_st* winnow_stream; /* cudaStream_t */

/* Latent rows (512 latent channels, 64 roped) in the cache; the name gives the bytes of a token. */
typedef enum winnow_latent_layout {
  WINNOW_LATENT_BF16_1152 = 1, /* bf16 */
  WINNOW_LATENT_FP8_656 = 2,   /* 512 e4m3, 4 fp32 scales (one per 128), 64 bf16 */
  WINNOW_LATENT_FP8_644 = 3,   /* 512 e4m3, 64 bf16; fp32 scales of the 64 tokens end the page */
  WINNOW_LATENT_FP8_576 = 4    /* 576 e4m3, value = e4m3 * cache_scale */
} winnow_latent_layout;

/* ---- Sparse MLA -------------------------------------------------------------------------------
 * out[t][h] = sum_j softmax_j(softmax_scale * (q_latent . c_j + q_rope . k_j)) * c_j over the row's
 * slots. Entries of -1 and beyond the pool are skipped; a row without any gives zeros, lse -inf. */
typedef struct winnow_sparse_mla_params {
  const void* q_latent;      /* bf16 [T, H, 512], heads already absorbed */
  const void* q_rope;        /* bf16 [T, H, 64] */
  const int32_t* slots;      /* [T, slots_stride] */
  const int32_t* lens;       /* [T] entries of the row, 0..slots_stride */
  int64_t slots_stride;
  int32_t num_rows;          /* T */
  int32_t num_heads;         /* H, 1..128 */
  float softmax_scale;
  float cache_scale;         /* WINNOW_LATENT_FP8_576 only */
  const void* cache;         /* [num_pages], page_stride_bytes apart, 16-byte aligned */
  int64_t page_stride_bytes; /* a multiple of 16 */
  int32_t num_pages;
  void* out;                 /* bf16 [T, H, 512] */
  float* lse;                /* [T, H] natural logarithm, or null */
} winnow_sparse_mla_params;

/* How a batch runs, made on the host once a batch. Opaque but for workspace_bytes. */
typedef struct winnow_sparse_mla_plan {
  int64_t workspace_bytes; /* device memory to lend, 256-byte aligned */
  int32_t words[18];
} winnow_sparse_mla_plan;

/* max_tokens: no row has more entries. batch_invariant: a row's bits do not depend on the batch.
 * fp8_query: the kernel may round queries to e4m3, each (row, head) by its own power of two; it
 * does for WINNOW_LATENT_FP8_576 with more than 32 heads. */
WINNOW_KERNELS_API int winnow_plan_sparse_mla(winnow_latent_layout layout,
                                              int32_t num_rows,
                                              int32_t num_heads,
                                              int32_t max_tokens,
                                              int32_t num_multiprocessors,
                                              int32_t batch_invariant,
                                              int32_t fp8_query,
                                              winnow_sparse_mla_plan* plan);
/* Finds neighbouring rows that choose mostly the same slots, so that they can share a gather. Once
 * for a set of slots, before the winnow_sparse_mla calls (one a layer) that use it. */
WINNOW_KERNELS_API int winnow_sparse_mla_groups(const winnow_sparse_mla_params* params,
                                                const winnow_sparse_mla_plan* plan,
                                                void* workspace,
                                                winnow_stream stream);
WINNOW_KERNELS_API int winnow_sparse_mla(const winnow_sparse_mla_params* params,
                                         const winnow_sparse_mla_plan* plan,
                                         void* workspace,
                                         winnow_stream stream);

/* ---- Token selection ---------------------------------------------------------------------------
 * logits[t][s] = scale[s] * sum_h relu(q[t][h] . k[s]) * head_weights[t][h]; the K largest, equal
 * ones in favour of the lower position, NaN as -inf; slots in position order, then -1. */
typedef struct winnow_rows {
  int32_t num_rows;           /* T */
  int32_t num_seqs;           /* T or fewer */
  const int32_t* positions;   /* [T], -1: sees nothing */
  const int32_t* seq_of_row;  /* [T] row of page_tables */
  const int32_t* page_tables; /* [num_seqs, page_table_stride] page ids */
  int64_t page_table_stride;
} winnow_rows;

typedef struct winnow_index_keys { /* pages of 64 x 128 e4m3, then 64 fp32 scales */
  const void* data;
  int64_t page_stride_bytes; /* a multiple of 16 */
  int32_t num_pages;
} winnow_index_keys;

/* q: e4m3 [T, Hi, 128]; head_weights: [T, Hi], the query's scale in them; logits: fp32
 * [T, logits_stride], column s token s, -inf where the row does not see. Hi: a multiple of 8. */
WINNOW_KERNELS_API int64_t winnow_index_logits_workspace_bytes(int32_t max_rows);
WINNOW_KERNELS_API int winnow_index_logits(const winnow_rows* rows,
                                           const void* q,
                                           const float* head_weights,
                                           int32_t index_n_heads,
                                           const winnow_index_keys* keys,
                                           int64_t num_tokens,
                                           float* logits,
                                           int64_t logits_stride,
                                           void* workspace,
                                           int64_t workspace_bytes,
                                           winnow_stream stream);
/* Portable. slots: [T, K]; lens: [T] min(position + 1, K). K: 1..2048. */
WINNOW_KERNELS_API int winnow_topk(const winnow_rows* rows,
                                   const float* logits,
                                   int64_t logits_stride,
                                   int32_t topk,
                                   int32_t* slots,
                                   int32_t* lens,
                                   winnow_stream stream);
/* Both in one, the logits in the workspace, as many rows at a time as fit. max_tokens: no row sees
 * more. The workspace never needs more than budget_bytes, unless one row does. */
WINNOW_KERNELS_API int64_t winnow_select_tokens_workspace_bytes(int32_t max_rows,
                                                                int64_t max_tokens,
                                                                int64_t budget_bytes);
WINNOW_KERNELS_API int winnow_select_tokens(const winnow_rows* rows,
                                            const void* q,
                                            const float* head_weights,
                                            int32_t index_n_heads,
                                            const winnow_index_keys* keys,
                                            int64_t max_tokens,
                                            int32_t topk,
                                            int32_t* slots,
                                            int32_t* lens,
                                            void* workspace,
                                            int64_t workspace_bytes,
                                            winnow_stream stream);

/* ---- Cache writes, portable ---------------------------------------------------------------------
 * Latent rows [rms_norm(kv[:512]) | rope(kv[512:])], interleaved pairs, rounded to the layout, to
 * write_slots[t] (-1: none). cos, sin: fp32 [max_positions, 32]. */
typedef struct winnow_append_latent_params {
  int32_t num_rows;
  const int32_t* positions;   /* [T] */
  const int32_t* write_slots; /* [T] */
  const void* kv;             /* bf16 [T, 576] */
  const float* norm_weight;   /* [512] */
  float norm_eps;
  const float* cos;
  const float* sin;
  void* cache;
  int64_t page_stride_bytes;
  float cache_scale; /* WINNOW_LATENT_FP8_576 only */
} winnow_append_latent_params;
WINNOW_KERNELS_API int winnow_append_latent(winnow_latent_layout layout,
                                            const winnow_append_latent_params* params,
                                            winnow_stream stream);

#ifdef __cplusplus
}
#endif
#endif /* WINNOW_KERNELS_H */
