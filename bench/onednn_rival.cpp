#include <omp.h>

#include <dnnl.hpp>
#include <exception>
#include <unordered_map>

#include "rival.h"

namespace winnow::bench {

namespace {

// The weight is laid out as oneDNN likes it best, before anything is measured.
class OneDnnRival final : public Rival {
 public:
  OneDnnRival(const float* weight, int64_t rows, int64_t in, int64_t out, bool bf16)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const memory::desc x_plain({rows, in}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc y_plain({rows, out}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc w_plain({in, out}, memory::data_type::f32, memory::format_tag::ba);
    const memory::desc x_desc({rows, in}, type, memory::format_tag::ab);
    const memory::desc w_any({in, out}, type, memory::format_tag::any);
    const dnnl::matmul::primitive_desc plan({x_desc, w_any, y_plain}, engine_);
    x_plain_ = memory(x_plain, engine_, nullptr);
    x_ = bf16 ? memory(x_desc, engine_) : x_plain_;
    y_ = memory(y_plain, engine_, nullptr);
    w_ = memory(plan.weights_desc(), engine_);
    memory given(w_plain, engine_, const_cast<float*>(weight));
    dnnl::reorder(given, w_).execute(stream_, given, w_);
    stream_.wait();
    if (bf16) to_bf16_ = dnnl::reorder(x_plain_, x_);
    product_ = dnnl::matmul(plan);
    bf16_ = bf16;
  }

  void run(const float* x, float* y) override {
    x_plain_.set_data_handle(const_cast<float*>(x));
    y_.set_data_handle(y);
    if (bf16_) to_bf16_.execute(stream_, x_plain_, x_);
    product_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory x_plain_, x_, w_, y_;
  dnnl::reorder to_bf16_;
  dnnl::matmul product_;
  bool bf16_ = false;
};

}  // namespace

Rival* make_rival(
    const float* weight, int64_t rows, int64_t in, int64_t out, bool bf16, int num_threads) {
  omp_set_num_threads(num_threads);
  try {
    return new OneDnnRival(weight, rows, in, out, bf16);
  } catch (const dnnl::error&) {
    return nullptr;  // no such kernel on this CPU
  }
}

}  // namespace winnow::bench
