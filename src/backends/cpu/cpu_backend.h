// The CPU backend: the oracle that other backends are tested against, and the fallback.
// Activations are f32. A row's bits depend only on the model's shape and the row's own tokens: not
// on the other rows of the batch, chunking, page placement or threads. One file a topic:
//   token_ops     embedding, norms, gathers          feed_forward  mlp, moe
//   router        expert choice                      linear        all matrix products
//   latent_cache  append, copy, read latents         indexer       index queries, keys, logits
//   topk          token selection                    attention     absorb, sparse and dense MLA
#pragma once

#include "backends/cpu/workspace.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace winnow::backends {

struct LinearJob;

class CpuBackend final : public ops::Backend {
 public:
  explicit CpuBackend(int num_threads) : pool_(num_threads) {}

  const char* name() const override { return "cpu"; }
  DType activation_dtype() const override { return DType::kF32; }
  bool reads_host_memory() const override { return true; }
  int64_t free_memory_bytes() const override;

  Buffer allocate(int64_t bytes) override;
  void upload(void* to, const void* from_host, int64_t bytes) override;
  void download(void* to_host, const void* from, int64_t bytes) override;
  void synchronize() override {}

  void prepare(const ops::ModelShape& shape) override;

  void embed(const ops::EmbedArgs& args) override;
  void rms_norm(const ops::RmsNormArgs& args) override;
  void linear(const ops::LinearArgs& args) override;
  void mlp(const ops::MlpArgs& args) override;
  void route_experts(const ops::RouteExpertsArgs& args) override;
  void moe(const ops::MoeArgs& args) override;
  void gather_rows(const ops::GatherRowsArgs& args) override;

  void append_latent(const ops::AppendLatentArgs& args) override;
  void absorb_query(const ops::AbsorbQueryArgs& args) override;
  void index_query(const ops::IndexQueryArgs& args) override;
  void append_index_key(const ops::AppendIndexKeyArgs& args) override;
  void index_logits(const ops::IndexLogitsArgs& args) override;
  void topk(const ops::TopkArgs& args) override;
  void select_tokens(const ops::SelectTokensArgs& args) override;
  void sparse_mla(const ops::SparseMlaArgs& args) override;
  void dense_mla(const ops::DenseMlaArgs& args) override;
  void up_project(const ops::UpProjectArgs& args) override;
  void copy_latent(const ops::CopyLatentArgs& args) override;
  void copy_index_keys(const ops::CopyIndexKeysArgs& args) override;

 private:
  void run_linear(const LinearJob& job);
  void run_mlp(int64_t num_rows,
               const float* x,
               const ops::MlpWeights& weights,
               bool fp8_activations,
               float* out);

  ThreadPool pool_;
  Workspace workspace_;
};

}  // namespace winnow::backends
