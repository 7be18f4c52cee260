// The CPU backend: the oracle that other backends are tested against, and the fallback.
// Activations are f32. A row's bits depend only on the model's shape and the row's own tokens: not
// on the other rows of the batch, chunking, page placement or threads. They do depend on the
// instruction set (kernels.h). One file a topic:
//   token_ops     embedding, norms, gathers          feed_forward  mlp, moe
//   router        expert choice                      linear        all matrix products
//   latent_cache  append, copy, read latents         index_keys    append, copy, read index keys
//   indexer       index queries and logits           topk          token selection
//   attention     sparse and dense MLA               absorb        products with kv_b by head
// and the arithmetic that depends on the vector width in *_kernels.h, one kernels_<isa>.cpp each.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/workspace.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace winnow::backends {

struct LinearJob;
struct AttentionJob;

class CpuBackend final : public ops::Backend {
 public:
  explicit CpuBackend(int num_threads, const KernelTable& kernels = best_kernels())
      : pool_(num_threads), kernels_(kernels) {}

  const char* name() const override { return "cpu"; }
  DType activation_dtype() const override { return DType::kF32; }
  bool reads_host_memory() const override { return true; }
  int64_t free_memory_bytes() const override;
  ThreadPool& host_threads() override { return pool_; }

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
  // parallel_for, but loops too short to be worth waking anyone stay on the calling thread.
  // work: multiply-adds of the whole loop, roughly.
  template <typename Body>
  void for_items(int64_t num_items, int64_t work, Body&& body) {
    constexpr int64_t kWorthSharing = 200'000;
    if (work >= kWorthSharing) {
      pool_.parallel_for(num_items, body);
    } else {
      for (int64_t item_idx = 0; item_idx < num_items; ++item_idx) body(item_idx, 0);
    }
  }

  ThreadScratch& scratch_of(int thread_idx) {
    return workspace_.threads[static_cast<size_t>(thread_idx)];
  }

  void run_linear(const LinearJob& job);
  void run_linear_chunk(const LinearJob& job, int64_t first, int64_t rows);
  // x rows are entries[i] / entries_per_row where entries is given.
  void run_mlp(int64_t num_rows,
               const float* x,
               const int32_t* entries,
               int64_t entries_per_row,
               const ops::MlpWeights& weights,
               bool fp8_activations,
               float* out);
  void score_keys(const ops::IndexLogitsArgs& args,
                  const int32_t* row_list,
                  int64_t num_rows,
                  bool fill_rest);
  void attend(const AttentionJob& job);
  void attend_rows(const AttentionJob& job, int64_t work);
  void attend_shared(const AttentionJob& job, int64_t row, int64_t work);

  ThreadPool pool_;
  const KernelTable& kernels_;
  Workspace workspace_;
};

}  // namespace winnow::backends
