// A backend that only owns memory: for tests of loaders and planners. Its ops abort.
#pragma once

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "ops/backend.h"

namespace winnow::testing {

class MemoryBackend : public ops::Backend {
 public:
  // fill: every byte of fresh memory; 0xff makes what was never written a NaN.
  explicit MemoryBackend(bool reads_host_memory, int fill = 0)
      : reads_host_memory_(reads_host_memory), fill_(fill) {}

  int64_t allocated_bytes() const { return allocated_bytes_; }

  const char* name() const override { return "memory"; }
  DType activation_dtype() const override { return DType::kF32; }
  bool reads_host_memory() const override { return reads_host_memory_; }
  int64_t free_memory_bytes() const override { return int64_t{1} << 30; }
  ThreadPool& host_threads() override { return threads_; }
  Buffer allocate(int64_t bytes) override {
    const size_t padded = static_cast<size_t>((bytes + 63) / 64 * 64);
    void* data = std::aligned_alloc(64, padded);
    std::memset(data, fill_, padded);
    allocated_bytes_ += bytes;
    return {data, bytes, [](void* p) { std::free(p); }};
  }
  void upload(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void synchronize() override {}

  void prepare(const ops::ModelShape&) override { no_op(); }
  void embed(const ops::EmbedArgs&) override { no_op(); }
  void rms_norm(const ops::RmsNormArgs&) override { no_op(); }
  void linear(const ops::LinearArgs&) override { no_op(); }
  void mlp(const ops::MlpArgs&) override { no_op(); }
  void route_experts(const ops::RouteExpertsArgs&) override { no_op(); }
  void moe(const ops::MoeArgs&) override { no_op(); }
  void gather_rows(const ops::GatherRowsArgs&) override { no_op(); }
  void append_latent(const ops::AppendLatentArgs&) override { no_op(); }
  void absorb_query(const ops::AbsorbQueryArgs&) override { no_op(); }
  void index_query(const ops::IndexQueryArgs&) override { no_op(); }
  void append_index_key(const ops::AppendIndexKeyArgs&) override { no_op(); }
  void index_logits(const ops::IndexLogitsArgs&) override { no_op(); }
  void topk(const ops::TopkArgs&) override { no_op(); }
  void select_tokens(const ops::SelectTokensArgs&) override { no_op(); }
  void sparse_mla(const ops::SparseMlaArgs&) override { no_op(); }
  void dense_mla(const ops::DenseMlaArgs&) override { no_op(); }
  void up_project(const ops::UpProjectArgs&) override { no_op(); }
  void copy_latent(const ops::CopyLatentArgs&) override { no_op(); }
  void copy_index_keys(const ops::CopyIndexKeysArgs&) override { no_op(); }

 private:
  [[noreturn]] static void no_op() {
    WINNOW_CHECK(false, "{}", "memory only");
    std::abort();
  }

  bool reads_host_memory_;
  int fill_;
  ThreadPool threads_{1};
  int64_t allocated_bytes_ = 0;
};

}  // namespace winnow::testing
