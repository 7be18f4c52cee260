// The C seam: the structs of winnow_kernels.h turned into those of the kernels' own headers.
#include "kernels/c/winnow_kernels.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "kernels/attention.h"
#include "kernels/cache_writes.h"
#include "kernels/indexer.h"

namespace {

namespace kernels = winnow::kernels;
using winnow::layout::IndexKeyGeometry;
using winnow::layout::IndexKeyLayout;
using winnow::layout::LatentLayout;

static_assert(static_cast<int>(LatentLayout::kBf16_1152) == WINNOW_LATENT_BF16_1152);
static_assert(static_cast<int>(LatentLayout::kFp8_656) == WINNOW_LATENT_FP8_656);
static_assert(static_cast<int>(LatentLayout::kFp8_644) == WINNOW_LATENT_FP8_644);
static_assert(static_cast<int>(LatentLayout::kFp8_576) == WINNOW_LATENT_FP8_576);
static_assert(sizeof(kernels::SparseMlaPlan) <= sizeof(winnow_sparse_mla_plan::words));

constexpr IndexKeyGeometry kKeys{IndexKeyLayout::kFp8_132, 128, 64};

kernels::SparseMlaParams from_c(const winnow_sparse_mla_params& p) {
  return {.q_latent = p.q_latent,
          .q_rope = p.q_rope,
          .slots = p.slots,
          .lens = p.lens,
          .slots_stride = p.slots_stride,
          .num_rows = p.num_rows,
          .num_heads = p.num_heads,
          .softmax_scale = p.softmax_scale,
          .cache = p.cache,
          .page_stride_bytes = p.page_stride_bytes,
          .num_pages = p.num_pages,
          .cache_scale = p.cache_scale,
          .out = p.out,
          .lse = p.lse};
}
kernels::SparseMlaPlan from_c(const winnow_sparse_mla_plan& p) {
  kernels::SparseMlaPlan plan;
  std::memcpy(&plan, p.words, sizeof plan);
  return plan;
}
kernels::RowsView from_c(const winnow_rows& r) {
  return {.num_rows = r.num_rows,
          .num_seqs = r.num_seqs,
          .positions = r.positions,
          .seq_of_row = r.seq_of_row,
          .page_tables = r.page_tables,
          .page_table_stride = r.page_table_stride};
}

}  // namespace

int32_t winnow_kernels_version(void) { return WINNOW_KERNELS_VERSION; }

int winnow_plan_sparse_mla(winnow_latent_layout layout,
                           int32_t num_rows,
                           int32_t num_heads,
                           int32_t max_tokens,
                           int32_t num_multiprocessors,
                           int32_t batch_invariant,
                           int32_t fp8_query,
                           winnow_sparse_mla_plan* plan) {
  const kernels::SparseMlaPlan made = kernels::sm90::plan_sparse_mla(
      static_cast<LatentLayout>(layout), num_rows, num_heads, max_tokens, num_multiprocessors,
      batch_invariant != 0, fp8_query != 0);
  if (made.kernel == kernels::SparseMlaKernel::kNone) return cudaErrorNotSupported;
  std::memset(plan, 0, sizeof *plan);
  plan->workspace_bytes = made.workspace_bytes;
  std::memcpy(plan->words, &made, sizeof made);
  return cudaSuccess;
}
int winnow_sparse_mla_groups(const winnow_sparse_mla_params* params,
                             const winnow_sparse_mla_plan* plan,
                             void* workspace,
                             winnow_stream stream) {
  return kernels::sm90::sparse_mla_groups(from_c(*params), from_c(*plan), workspace, stream);
}
int winnow_sparse_mla(const winnow_sparse_mla_params* params,
                      const winnow_sparse_mla_plan* plan,
                      void* workspace,
                      winnow_stream stream) {
  return kernels::sm90::sparse_mla(from_c(*params), from_c(*plan), workspace, stream);
}

int64_t winnow_index_logits_workspace_bytes(int32_t max_rows) {
  return kernels::sm90::index_logits_workspace_bytes(max_rows);
}
int winnow_index_logits(const winnow_rows* rows,
                        const void* q,
                        const float* head_weights,
                        int32_t index_n_heads,
                        const winnow_index_keys* keys,
                        int64_t num_tokens,
                        float* logits,
                        int64_t logits_stride,
                        void* workspace,
                        int64_t workspace_bytes,
                        winnow_stream stream) {
  return kernels::sm90::index_logits({.rows = from_c(*rows),
                                      .q = q,
                                      .head_weights = head_weights,
                                      .index_n_heads = index_n_heads,
                                      .keys = kKeys,
                                      .key_data = keys->data,
                                      .page_stride_bytes = keys->page_stride_bytes,
                                      .num_pages = keys->num_pages,
                                      .key_end = num_tokens,
                                      .logits = logits,
                                      .logits_stride = logits_stride,
                                      .workspace = workspace,
                                      .workspace_bytes = workspace_bytes},
                                     stream);
}
int winnow_topk(const winnow_rows* rows,
                const float* logits,
                int64_t logits_stride,
                int32_t topk,
                int32_t* slots,
                int32_t* lens,
                winnow_stream stream) {
  return kernels::portable::topk({.rows = from_c(*rows),
                                  .logits = logits,
                                  .logits_stride = logits_stride,
                                  .page_size = 64,
                                  .topk = topk,
                                  .slots = slots,
                                  .lens = lens},
                                 stream);
}
int64_t winnow_select_tokens_workspace_bytes(int32_t max_rows,
                                             int64_t max_tokens,
                                             int64_t budget_bytes) {
  return kernels::sm90::select_tokens_workspace_bytes(max_rows, max_tokens, budget_bytes);
}
int winnow_select_tokens(const winnow_rows* rows,
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
                         winnow_stream stream) {
  return kernels::sm90::select_tokens({.rows = from_c(*rows),
                                       .q = q,
                                       .head_weights = head_weights,
                                       .index_n_heads = index_n_heads,
                                       .keys = kKeys,
                                       .key_data = keys->data,
                                       .page_stride_bytes = keys->page_stride_bytes,
                                       .num_pages = keys->num_pages,
                                       .max_tokens = max_tokens,
                                       .topk = topk,
                                       .slots = slots,
                                       .lens = lens,
                                       .workspace = workspace,
                                       .workspace_bytes = workspace_bytes},
                                      stream);
}

int winnow_append_latent(winnow_latent_layout layout,
                         const winnow_append_latent_params* params,
                         winnow_stream stream) {
  return kernels::portable::append_latent(
      {.rows = {.num_rows = params->num_rows,
                .positions = params->positions,
                .write_slots = params->write_slots},
       .kv = params->kv,
       .norm_weight = params->norm_weight,
       .norm_eps = params->norm_eps,
       .rope = {.cos = params->cos, .sin = params->sin, .dim = 64},
       .geometry = {static_cast<LatentLayout>(layout), 512, 64, 64},
       .cache = params->cache,
       .page_stride_bytes = params->page_stride_bytes,
       .scale = layout == WINNOW_LATENT_FP8_576 ? params->cache_scale : 1.0f},
      stream);
}
