// The arithmetic that depends on the CPU's vector width. Each instruction set has one source file,
// compiled with its own flags from the same templates; the best one the CPU has is taken at run
// time. Different instruction sets add in different lanes, so their bits differ; within one, a
// row's bits never depend on what is computed beside it.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace winnow::backends {

// Weight columns (k) of one packed block of activations; a multiple of the fp8 scale group.
inline constexpr int64_t kColumnBlock = 256;
// Every in_features is padded with zeros to a multiple of this in packed activations.
inline constexpr int64_t kColumnPad = 64;
// Outputs of one work item of a linear, at most. Divides 128, so that an item's outputs share their
// block scales.
inline constexpr int64_t kOutputTile = 128;
// So many rows meet the weights straight from memory; more go over weights unpacked once for all.
inline constexpr int64_t kFewRows = 4;
// Rows whose partial sums are kept at a time.
inline constexpr int64_t kRowTile = 64;
// Widest vector of any instruction set, in floats.
inline constexpr int64_t kMaxLanes = 16;
// Floats of scratch that linear_tile needs.
inline constexpr int64_t kLinearScratch =
    (kOutputTile + kRowTile) * kColumnBlock + kRowTile * kOutputTile * kMaxLanes;
// Cached tokens (or index keys) that one call works on at most.
inline constexpr int64_t kTokenTile = 64;
// Channels of a latent or an index key are padded to a multiple of this in scratch.
inline constexpr int64_t kChannelPad = 32;

// Rows of activations as linear_tile reads them: [block][num_rows][kColumnBlock], columns of a
// block permuted as the weight's dtype unpacks.
struct PackRows {
  const float* x = nullptr;          // [.., in], rows x_stride apart
  const int32_t* row_idx = nullptr;  // packed row r is x row row_idx[r]; null: r itself
  int64_t row_divisor = 1;           // .. divided by this (entries of a row's several experts)
  int64_t x_stride = 0;
  int64_t num_rows = 0;
  int64_t in_features = 0;
  DType weight_dtype = DType::kF32;
  bool to_e4m3 = false;  // round per row and 128 channels
  float* packed = nullptr;
};

// Some outputs of a linear for all packed rows.
struct LinearTile {
  const float* packed = nullptr;
  int64_t num_rows = 0;
  int64_t in_features = 0;
  const void* weight = nullptr;     // whole matrix [out, in]
  const float* w_scales = nullptr;  // e4m3 only
  int64_t first_output = 0;
  int64_t num_outputs = 0;     // at most kOutputTile; of e4m3 in one row of blocks
  int64_t outputs_behind = 0;  // further outputs that the caller wants next: worth prefetching
  float* y = nullptr;          // y[r * y_stride + output]
  int64_t y_stride = 0;
  float* scratch = nullptr;  // [kLinearScratch]
};

// c[m][n] = sum_k a[m][k] * b[k][n], added to c with accumulate; k in order within blocks of 128.
// Columns n come in panels of 2 * lanes: b[k][panel] lies at b + k * b_k_stride + panel *
// b_panel_stride.
struct Product {
  const float* a = nullptr;
  int64_t a_stride = 0;       // between rows m
  bool a_by_columns = false;  // a[m][k] lies at a + k * a_stride + m instead
  const float* b = nullptr;
  int64_t b_k_stride = 0;
  int64_t b_panel_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t m = 0, k = 0, num_panels = 0;
  bool accumulate = false;
};

// The softmax of some heads over the tokens seen so far: maxima -inf and the rest 0 at the start.
struct SoftmaxState {
  float* maxima = nullptr;  // [heads padded to panels]
  float* sums = nullptr;    // [heads padded to panels]
  float* output = nullptr;  // [heads, output_stride], unnormalised
};

// One group of at most kTokenTile tokens added to the softmax of num_heads heads.
struct AttendGroup {
  const float* q_latent = nullptr;  // by transpose_rows: [num_panels][kv_lora_rank][2 lanes]
  const float* q_rope = nullptr;    // [num_panels][qk_rope_head_dim][2 lanes]
  int64_t num_heads = 0, num_panels = 0, kv_lora_rank = 0, qk_rope_head_dim = 0;
  float softmax_scale = 0;
  const float* latents = nullptr;  // [count, latent_stride], latent then roped key
  int64_t latent_stride = 0;
  int64_t count = 0;
  float* scores = nullptr;  // [kTokenTile, num_panels * 2 lanes] scratch
  bool is_first = false;    // of the state, whose output is then written without being read
  SoftmaxState state;
  int64_t output_stride = 0;
  int64_t num_channels = 0;  // of the output: kv_lora_rank padded, at most output_stride
};

// A kernel body with its name in the source, which inspect prints.
template <typename Signature>
struct Kernel;
template <typename... Args>
struct Kernel<void(Args...)> {
  void (*body)(Args...) = nullptr;
  const char* name = "";

  void operator()(Args... args) const { body(args...); }
};

struct KernelTable {
  const char* isa;
  int64_t lanes;
  Kernel<void(const PackRows& args, int64_t row)> pack_rows;
  Kernel<void(const LinearTile& tile)> linear_f32;
  Kernel<void(const LinearTile& tile)> linear_bf16;
  Kernel<void(const LinearTile& tile)> linear_f16;
  Kernel<void(const LinearTile& tile)> linear_e4m3;
  // out = x / rms(x) * weight
  Kernel<void(const float* x, const float* weight, int64_t width, float eps, float* out)> rms_norm;
  Kernel<void(float* sum, const float* x, int64_t count)> add;  // sum += x
  Kernel<void(float* sum, const float* x, float factor, int64_t count)> add_scaled;
  Kernel<void(float* gate, const float* up, int64_t count)> silu_mul;  // gate = silu(gate) * up
  Kernel<void(const void* from, int64_t count, float* out)> unpack_bf16;
  // e4m3 values times scale; NaN codes give NaN.
  Kernel<void(const uint8_t* from, int64_t count, float scale, float* out)> unpack_e4m3;
  // rows [count, dim] (stride apart) into panels [count padded / (2 lanes)][dim][2 lanes], zero
  // padded
  Kernel<void(const float* rows, int64_t stride, int64_t count, int64_t dim, float* out)>
      transpose_rows;
  Kernel<void(const Product& args)> product;
  Kernel<void(const AttendGroup& group)> attend_group;
  // all += part, a softmax over other tokens
  Kernel<void(const SoftmaxState& part,
              const SoftmaxState& all,
              int64_t num_heads,
              int64_t num_channels,
              int64_t output_stride)>
      merge_states;
  // logits[s] = key_scales[s] * sum_h max(products[s * stride + h], 0) * head_weights[h], s < count
  Kernel<void(const float* products,
              int64_t stride,
              const float* head_weights,
              int64_t num_heads,
              const float* key_scales,
              int64_t count,
              float* logits)>
      combine_heads;
};

// The best table this CPU can run.
const KernelTable& best_kernels();
// Those of this build, best first, whatever this CPU can run; null behind the last.
const KernelTable* compiled_kernels(int64_t index);
// By name: "portable", "avx2", "avx512"; null where the CPU or the build lacks it.
const KernelTable* find_kernels(const char* isa);

}  // namespace winnow::backends
