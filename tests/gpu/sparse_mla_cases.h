// Inputs of the sparse MLA checks and benches, and a plain double-precision answer to them.
#pragma once

#include <cuda_bf16.h>

#include "gpu/gpu_check.h"
#include "kernels/attention.h"

namespace winnow::gpu_check::mla {

using kernels::SparseMlaParams;
using kernels::SparseMlaPlan;
using layout::LatentLayout;

inline constexpr int kC = 512, kR = 64, kPage = 64;

struct Case {
  LatentLayout layout;
  int rows;
  int heads;
  int topk;
  int64_t tokens;              // of the pool; a multiple of 64
  std::vector<int> lens = {};  // taken in turn; empty: all topk
  bool holes = false;          // -1 and out-of-range slots between valid ones
  float spread = 1.0f;         // factor on the queries: large ones make sharp softmaxes
  // Rows in groups of this many, as token selection makes them: different slots in position order,
  // pages shuffled, a part `overlap` of the slots the same for all rows of the group. 0: any slots.
  int group = 0;
  float overlap = 0;
  bool mixed = false;  // every second group has overlap 0
  int row_step = 1;    // only rows this far apart are compared with the reference
  bool fp8_query = false;
};

struct Data {
  DeviceArray<__nv_bfloat16> q_latent, q_rope, out;
  DeviceArray<uint8_t> cache;
  DeviceArray<int32_t> slots, lens;
  DeviceArray<float> lse;
  SparseMlaParams params;
};

// poison_unused: rows that no valid slot names stay NaN.
Data make_data(const Case& c, uint64_t seed, bool poison_unused);

// With c.fp8_query the reference has its queries rounded as the kernel has to round them.
// One result a row and head (rows row_step apart): output, natural log-sum-exp, and reach, the
// largest sum of absolute products of a logit: the scale on which its rounding is measured.
struct Reference {
  DeviceArray<double> out, lse, reach;
};
Reference make_reference(const Case& c, const Data& d);

int multiprocessors();
SparseMlaPlan make_plan(const Case& c, bool invariant);
// Groups and attention.
void run(const SparseMlaParams& params,
         const SparseMlaPlan& plan,
         void* workspace,
         cudaStream_t stream);
std::string describe(const Case& c);

}  // namespace winnow::gpu_check::mla
