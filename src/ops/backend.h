// The contract between the model and whatever computes it. Pure virtual: an op that one backend
// lacks does not compile. Calls are asynchronous in order; synchronize() waits for all of them.
// Thread use: one thread at a time. The same call with the same inputs gives the same bits.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "ops/attention_ops.h"
#include "ops/token_ops.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace winnow::ops {

// What a model will ask for: prepare() resolves every op once and sizes all workspace.
struct ModelShape {
  int32_t hidden_size = 0;
  int32_t vocab_size = 0;
  int32_t num_attention_heads = 0;
  int32_t q_lora_rank = 0;
  int32_t kv_lora_rank = 0;
  int32_t qk_nope_head_dim = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t v_head_dim = 0;
  int32_t index_n_heads = 0;  // 0: no indexer
  int32_t index_head_dim = 0;
  int32_t index_topk = 0;
  int32_t intermediate_size = 0;
  int32_t moe_intermediate_size = 0;
  int32_t n_routed_experts = 0;  // 0: dense layers only
  int32_t num_experts_per_tok = 0;
  layout::LatentLayout latent_layout = layout::LatentLayout::kF32;
  layout::IndexKeyLayout index_key_layout = layout::IndexKeyLayout::kNone;
  IndexFormat index_query_format = IndexFormat::kF32;
  int32_t page_size = 64;
  int32_t max_rows = 0;     // of one step
  int32_t max_context = 0;  // tokens of one sequence
  int64_t index_logits_budget_bytes = int64_t{256} << 20;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const = 0;
  virtual DType activation_dtype() const = 0;
  // Host pointers (a mapped checkpoint) can be passed as weights without upload.
  virtual bool reads_host_memory() const = 0;
  virtual int64_t free_memory_bytes() const = 0;

  // For loops over host memory between two ops, such as sampling.
  virtual ThreadPool& host_threads() = 0;

  // Zeroed memory, 64-byte aligned. Throws Error when there is none.
  virtual Buffer allocate(int64_t bytes) = 0;
  virtual void upload(void* to, const void* from_host, int64_t bytes) = 0;
  virtual void download(void* to_host, const void* from, int64_t bytes) = 0;
  virtual void synchronize() = 0;

  // Throws Error saying what was asked, what is offered and what is missing.
  virtual void prepare(const ModelShape& shape) = 0;

  virtual void embed(const EmbedArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void linear(const LinearArgs& args) = 0;
  virtual void mlp(const MlpArgs& args) = 0;
  virtual void route_experts(const RouteExpertsArgs& args) = 0;
  virtual void moe(const MoeArgs& args) = 0;
  virtual void gather_rows(const GatherRowsArgs& args) = 0;

  virtual void append_latent(const AppendLatentArgs& args) = 0;
  virtual void absorb_query(const AbsorbQueryArgs& args) = 0;
  virtual void index_query(const IndexQueryArgs& args) = 0;
  virtual void append_index_key(const AppendIndexKeyArgs& args) = 0;
  virtual void index_logits(const IndexLogitsArgs& args) = 0;
  virtual void topk(const TopkArgs& args) = 0;
  virtual void select_tokens(const SelectTokensArgs& args) = 0;
  virtual void sparse_mla(const SparseMlaArgs& args) = 0;
  virtual void dense_mla(const DenseMlaArgs& args) = 0;
  virtual void up_project(const UpProjectArgs& args) = 0;
  virtual void copy_latent(const CopyLatentArgs& args) = 0;
  virtual void copy_index_keys(const CopyIndexKeysArgs& args) = 0;
};

}  // namespace winnow::ops
