// Sparse MLA against a plain double-precision kernel over the same bytes, and its rates.
#include <cuda_bf16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu/gpu_check.h"
#include "kernels/attention.h"
#include "layout/float_formats.h"

namespace winnow::gpu_check {
namespace {

using kernels::SparseMlaParams;
using kernels::SparseMlaPlan;
using layout::LatentLayout;

constexpr int kC = 512, kR = 64, kPage = 64;

__device__ double decode_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  double magnitude = exponent == 0 ? mantissa / 512.0 : ldexp(8.0 + mantissa, exponent - 10);
  if (exponent == 15 && mantissa == 7) magnitude = nan("");
  return bits & 0x80 ? -magnitude : magnitude;
}
__device__ double decode_bf16(const uint8_t* at) {
  return __uint_as_float(static_cast<uint32_t>(at[0] | at[1] << 8) << 16);
}
__device__ double decode_f32(const uint8_t* at) {
  return __uint_as_float(at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24);
}

// Channel c (0..575) of a slot, by the layout's description and nothing else.
__device__ double cache_value(const SparseMlaParams& p, LatentLayout layout, int64_t slot, int c) {
  const layout::LatentGeometry geometry{layout, kC, kR, kPage};
  const uint8_t* page = static_cast<const uint8_t*>(p.cache) + slot / kPage * p.page_stride_bytes;
  const uint8_t* row = page + slot % kPage * geometry.row_bytes();
  const uint8_t* rope = row + geometry.rope_offset();
  switch (layout) {
    case LatentLayout::kBf16_1152:
      return decode_bf16(row + 2 * c);
    case LatentLayout::kFp8_576:
      return decode_e4m3(row[c]) * p.cache_scale;
    case LatentLayout::kFp8_656:
      return c < kC ? decode_e4m3(row[c]) * decode_f32(row + 512 + c / 128 * 4)
                    : decode_bf16(rope + 2 * (c - kC));
    case LatentLayout::kFp8_644:
      return c < kC ? decode_e4m3(row[c]) *
                          decode_f32(page + geometry.page_scales_offset() + slot % kPage * 4)
                    : decode_bf16(rope + 2 * (c - kC));
    default:
      return 0;
  }
}

// One block for a row and a head: logits, then the weighted sum, all in double. reach (zero
// before): the largest sum of absolute products of a logit, the scale on which its rounding is
// measured.
__global__ void reference_kernel(SparseMlaParams p,
                                 LatentLayout layout,
                                 double* logits,
                                 double* out,
                                 double* lse,
                                 double* reach) {
  const int64_t index = blockIdx.x, row = index / p.num_heads;
  const int len = p.lens[row];
  double* x = logits + index * p.slots_stride;
  __shared__ double top, total;
  double furthest = 0;
  const auto* q = static_cast<const uint8_t*>(p.q_latent) + index * kC * 2;
  const auto* q_rope = static_cast<const uint8_t*>(p.q_rope) + index * kR * 2;
  for (int j = threadIdx.x; j < len; j += blockDim.x) {
    const int32_t slot = p.slots[row * p.slots_stride + j];
    if (slot < 0 || slot >= int64_t{p.num_pages} * kPage) {
      x[j] = -INFINITY;
      continue;
    }
    double dot = 0, size = 0;
    for (int c = 0; c < kC + kR; ++c) {
      const double product = cache_value(p, layout, slot, c) *
                             (c < kC ? decode_bf16(q + 2 * c) : decode_bf16(q_rope + 2 * (c - kC)));
      dot += product;
      size += fabs(product);
    }
    furthest = fmax(furthest, size * p.softmax_scale);
    x[j] = dot * p.softmax_scale;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    top = -INFINITY;
    total = 0;
    for (int j = 0; j < len; ++j) top = fmax(top, x[j]);
    for (int j = 0; j < len; ++j) total += x[j] == -INFINITY ? 0 : exp(x[j] - top);
    lse[index] = total > 0 ? top + log(total) : -INFINITY;
  }
  // Positive doubles order like their bits.
  atomicMax(reinterpret_cast<unsigned long long*>(reach + index), __double_as_longlong(furthest));
  __syncthreads();
  for (int c = threadIdx.x; c < kC; c += blockDim.x) {
    double sum = 0;
    for (int j = 0; j < len; ++j) {
      if (x[j] == -INFINITY) continue;
      sum += exp(x[j] - top) / total * cache_value(p, layout, p.slots[row * p.slots_stride + j], c);
    }
    out[index * kC + c] = sum;
  }
}

__device__ uint32_t device_hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(x ^ (x >> 31));
}
// About normal, mean 0, deviation 1.
__device__ float device_normal(uint64_t x) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += device_hash(x * 4 + i) * 0x1p-32f - 0.5f;
  return sum * 1.7320508f;
}

__global__ void fill_bf16_kernel(__nv_bfloat16* to, int64_t count, float scale, uint64_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    to[i] = __float2bfloat16(device_normal(seed * 0x100000001ull + i) * scale);
  }
}
// Random rows for the slots whose flag is set (all without flags); other bytes stay.
__global__ void fill_cache_kernel(uint8_t* cache,
                                  LatentLayout layout,
                                  int64_t page_stride,
                                  int64_t num_slots,
                                  const uint8_t* used,
                                  float scale) {
  const layout::LatentGeometry geometry{layout, kC, kR, kPage};
  for (int64_t slot = blockIdx.x; slot < num_slots; slot += gridDim.x) {
    if (used != nullptr && used[slot] == 0) continue;
    uint8_t* page = cache + slot / kPage * page_stride;
    uint8_t* row = page + slot % kPage * geometry.row_bytes();
    const float token = exp2f(device_normal(slot + 77));
    for (int c = threadIdx.x; c < kC + kR; c += blockDim.x) {
      const float value = device_normal(slot * 1000 + c);
      const bool rope = c >= kC;
      const bool wide =
          layout == LatentLayout::kBf16_1152 || (rope && layout != LatentLayout::kFp8_576);
      if (wide) {
        auto* to = reinterpret_cast<__nv_bfloat16*>(
            layout == LatentLayout::kBf16_1152 ? row : row + geometry.rope_offset() - 2 * kC);
        to[c] = __float2bfloat16(value * scale);
      } else {
        // Any e4m3 but NaN: a sign, an exponent near the top, a mantissa.
        const uint32_t h = device_hash(slot * 1000 + c);
        row[c] = static_cast<uint8_t>((h & 0x80) | ((6 + h % 7) << 3) | (h >> 8 & 7));
      }
    }
    if (threadIdx.x < 4 && layout == LatentLayout::kFp8_656) {
      reinterpret_cast<float*>(row + 512)[threadIdx.x] =
          scale * token * exp2f(device_normal(slot * 4 + threadIdx.x)) * 0.05f;
    }
    if (threadIdx.x == 0 && layout == LatentLayout::kFp8_644) {
      reinterpret_cast<float*>(page + geometry.page_scales_offset())[slot % kPage] =
          scale * token * 0.05f;
    }
  }
}

struct Case {
  LatentLayout layout;
  int rows;
  int heads;
  int topk;
  int64_t tokens;              // of the pool; a multiple of 64
  std::vector<int> lens = {};  // taken in turn; empty: all topk
  bool holes = false;          // -1 and out-of-range slots between valid ones
  float overlap = 0;           // part of a row's slots that the row before has as well
  float spread = 1.0f;         // factor on the queries: large ones make sharp softmaxes
};

struct Data {
  DeviceArray<__nv_bfloat16> q_latent, q_rope, out;
  DeviceArray<uint8_t> cache;
  DeviceArray<int32_t> slots, lens;
  DeviceArray<float> lse;
  SparseMlaParams params;
};

Data make_data(const Case& c, uint64_t seed, bool poison_unused) {
  const layout::LatentGeometry geometry{c.layout, kC, kR, kPage};
  Data d;
  const int64_t pages = c.tokens / kPage;
  // A page stride larger than the page, as where layers share a buffer.
  const int64_t stride = (geometry.page_bytes() + 255) / 128 * 128;
  d.q_latent = DeviceArray<__nv_bfloat16>(int64_t{c.rows} * c.heads * kC);
  d.q_rope = DeviceArray<__nv_bfloat16>(int64_t{c.rows} * c.heads * kR);
  d.out = DeviceArray<__nv_bfloat16>(int64_t{c.rows} * c.heads * kC);
  d.lse = DeviceArray<float>(int64_t{c.rows} * c.heads);
  d.cache = DeviceArray<uint8_t>(pages * stride);
  std::vector<int32_t> slots(static_cast<size_t>(c.rows) * c.topk), lens(c.rows);
  std::vector<uint8_t> used(static_cast<size_t>(c.tokens), 0);
  for (int t = 0; t < c.rows; ++t) {
    lens[t] = c.lens.empty() ? c.topk : c.lens[t % c.lens.size()];
    for (int j = 0; j < c.topk; ++j) {
      const uint64_t key = seed * 0x10000000ull + uint64_t(t) * c.topk + j;
      int32_t slot = static_cast<int32_t>((uint64_t{hash32(key)} * c.tokens) >> 32);
      if (c.holes && hash32(key + (1ull << 60)) % 5 == 0) {
        const int32_t bad[] = {-1, INT32_MAX, INT32_MIN, static_cast<int32_t>(c.tokens)};
        slot = bad[hash32(key + (1ull << 61)) % 4];
      }
      if (j >= lens[t]) slot = hash32(key) % 2 ? -1 : slot;  // never read
      slots[static_cast<size_t>(t) * c.topk + j] = slot;
      if (j < lens[t] && slot >= 0 && slot < c.tokens) used[slot] = 1;
    }
  }
  d.slots = DeviceArray<int32_t>(slots);
  d.lens = DeviceArray<int32_t>(lens);
  DeviceArray<uint8_t> flags(used);
  fill_bf16_kernel<<<1024, 256>>>(d.q_latent.get(), d.q_latent.size(), c.spread, seed);
  fill_bf16_kernel<<<1024, 256>>>(d.q_rope.get(), d.q_rope.size(), c.spread, seed + 1);
  fill_cache_kernel<<<4096, 192>>>(d.cache.get(), c.layout, stride, c.tokens,
                                   poison_unused ? flags.get() : nullptr, 1.0f);
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaDeviceSynchronize());
  d.params = {.q_latent = d.q_latent.get(),
              .q_rope = d.q_rope.get(),
              .slots = d.slots.get(),
              .lens = d.lens.get(),
              .slots_stride = c.topk,
              .num_rows = c.rows,
              .num_heads = c.heads,
              .softmax_scale = 1.0f / 24.0f,
              .cache = d.cache.get(),
              .page_stride_bytes = stride,
              .num_pages = static_cast<int32_t>(pages),
              .cache_scale = 0.02f,
              .out = d.out.get(),
              .lse = d.lse.get()};
  return d;
}

int multiprocessors() {
  int count = 0;
  CUDA_OK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

void run(const SparseMlaParams& params,
         const SparseMlaPlan& plan,
         void* workspace,
         cudaStream_t stream) {
  CUDA_OK(static_cast<cudaError_t>(kernels::sm90::sparse_mla(params, plan, workspace, stream)));
}

std::string describe(const Case& c) {
  return std::string(layout::to_string(c.layout)) + " rows " + std::to_string(c.rows) + " heads " +
         std::to_string(c.heads) + " topk " + std::to_string(c.topk) + " tokens " +
         std::to_string(c.tokens) + (c.holes ? " holes" : "");
}

void check_case(Context& context, const Case& c, bool invariant, uint64_t seed) {
  Data d = make_data(c, seed, true);
  const size_t values = d.out.size();
  DeviceArray<double> logits(static_cast<size_t>(c.rows) * c.heads * c.topk), ref(values),
      ref_lse(d.lse.size()), ref_reach(d.lse.size());
  CUDA_OK(cudaMemset(ref_reach.get(), 0, ref_reach.size() * sizeof(double)));
  reference_kernel<<<c.rows * c.heads, 128>>>(d.params, c.layout, logits.get(), ref.get(),
                                              ref_lse.get(), ref_reach.get());
  CUDA_OK(cudaGetLastError());
  const SparseMlaPlan plan = kernels::sm90::plan_sparse_mla(c.layout, c.rows, c.heads, c.topk,
                                                            multiprocessors(), invariant);
  DeviceArray<uint8_t> workspace(plan.workspace_bytes);
  run(d.params, plan, workspace.get(), nullptr);
  CUDA_OK(cudaDeviceSynchronize());
  const auto got = d.out.download();
  const auto lse = d.lse.download();
  const auto want = ref.download();
  const auto want_lse = ref_lse.download();
  const auto reach = ref_reach.download();
  // The e4m3 tensor cores keep about 13 bits in each of 18 additions; bf16 products are summed in
  // fp32.
  const double logit_bits = c.layout == LatentLayout::kBf16_1152 ? 0x1p-20 : 0x1p-11;
  double error = 0, norm = 0, worst_row = 0,
         worst_lse = 0;  // the last two over what the case allows
  bool sane = true;
  for (size_t i = 0; i < lse.size(); ++i) {
    double row_error = 0, row_norm = 0;
    for (int k = 0; k < kC; ++k) {
      const double a = __bfloat162float(got[i * kC + k]), b = want[i * kC + k];
      row_error += (a - b) * (a - b);
      row_norm += b * b;
      sane = sane && std::isfinite(a);
    }
    error += row_error;
    norm += row_norm;
    const double logit_error = 1e-3 + reach[i] * logit_bits;
    if (row_norm > 0) {
      worst_row = std::max(worst_row, std::sqrt(row_error / row_norm) / (6e-3 + logit_error));
    }
    if (row_norm == 0) sane = sane && row_error == 0;
    if (std::isinf(want_lse[i])) {
      sane = sane && std::isinf(lse[i]) && lse[i] < 0;
    } else {
      worst_lse = std::max(worst_lse, std::fabs(lse[i] - want_lse[i]) / logit_error);
    }
  }
  const double relative = norm > 0 ? std::sqrt(error / norm) : 0;
  // Twenty runs, the same bits.
  bool same = true;
  for (int i = 0; i < (context.small ? 2 : 20); ++i) {
    d.out.poison();
    d.lse.poison();
    run(d.params, plan, workspace.get(), nullptr);
    const auto again = d.out.download();
    same = same && std::memcmp(again.data(), got.data(), values * 2) == 0;
  }
  // The first row alone has the same bits as in the batch.
  if (invariant) {
    SparseMlaParams alone = d.params;
    alone.num_rows = 1;
    const SparseMlaPlan own =
        kernels::sm90::plan_sparse_mla(c.layout, 1, c.heads, c.topk, multiprocessors(), true);
    d.out.poison();
    run(alone, own, workspace.get(), nullptr);
    const auto first = d.out.download();
    same = same && std::memcmp(first.data(), got.data(), size_t{2} * c.heads * kC) == 0;
  }
  char detail[160];
  std::snprintf(
      detail, sizeof detail,
      "relative %.2e, of the allowed: worst row %.2f, lse %.2f, splits %d, finite %d, same bits %d",
      relative, worst_row, worst_lse, plan.num_splits, sane, same);
  const bool ok = sane && same && relative < 5e-3 && worst_row < 1 && worst_lse < 1;
  context.expect(ok, "sparse_mla " + describe(c) + (invariant ? " invariant" : ""), detail);
}

void check_all(Context& context) {
  const std::vector<int> lens = {0, 1, 63, 64, 65, 2047, 2048, 17, 15, 16, 128, 777};
  const std::vector<int> few = {0, 1, 63, 64, 65, 127, 128, 17};
  uint64_t seed = 1;
  for (LatentLayout layout : {LatentLayout::kBf16_1152, LatentLayout::kFp8_576,
                              LatentLayout::kFp8_644, LatentLayout::kFp8_656}) {
    for (int heads : {1, 8, 13, 16, 32, 64, 100, 128}) {
      if (context.small && heads != 8 && heads != 16 && heads != 64) continue;
      check_case(context,
                 {layout, context.small ? 3 : 12, heads, context.small ? 128 : 2048, 8192,
                  context.small ? few : lens, false},
                 false, seed++);
      check_case(context,
                 {.layout = layout,
                  .rows = context.small ? 2 : 5,
                  .heads = heads,
                  .topk = context.small ? 128 : 2048,
                  .tokens = 4096,
                  .lens = {},
                  .holes = true,
                  .spread = 4.0f},
                 heads == 8 || heads == 64, seed++);
    }
    if (context.small) continue;
    // More rows than one pass of the grid, so that items follow each other in a block.
    check_case(context, {layout, 1200, 8, 256, 8192, {0, 256, 100, 31}, true}, false, seed++);
    check_case(context, {layout, 300, 64, 256, 8192, {0, 256, 100, 31}, true}, false, seed++);
  }
}

float time_case(const Case& c, Context& context, const char* note) {
  Data d = make_data(c, 5, false);
  const SparseMlaPlan plan =
      kernels::sm90::plan_sparse_mla(c.layout, c.rows, c.heads, c.topk, multiprocessors(), false);
  DeviceArray<uint8_t> workspace(plan.workspace_bytes);
  const auto call = [&](cudaStream_t stream) { run(d.params, plan, workspace.get(), stream); };
  const float us = median_us_cold(call);
  const float graph_us =
      c.rows < 1024 ? us_in_graph([&](cudaStream_t stream, int) { call(stream); }) : 0;
  const double flops = 2.0 * c.rows * c.heads * c.topk * (kC + kR + kC);
  const layout::LatentGeometry geometry{c.layout, kC, kR, kPage};
  const double bytes = 1.0 * c.rows * c.topk * geometry.bytes_per_token();
  std::printf(
      "%-18s rows %5d heads %3d tokens %6lld %s: %8.1f us %6.1f TFLOP/s %6.2f TB/s splits %d, warm "
      "in a graph %.1f us\n",
      layout::to_string(c.layout), c.rows, c.heads, static_cast<long long>(c.tokens), note, us,
      flops / us * 1e-6, bytes / us * 1e-6, plan.num_splits, graph_us);
  char fields[256];
  std::snprintf(
      fields, sizeof fields,
      "\"note\":\"%s\",\"us\":%.2f,\"graph_us\":%.2f,\"tflops\":%.1f,\"gathered_tbs\":%.3f,"
      "\"splits\":%d",
      note, us, graph_us, flops / us * 1e-6, bytes / us * 1e-6, plan.num_splits);
  context.record("sparse_mla " + describe(c), fields);
  return us;
}

void bench_all(Context& context) {
  for (int64_t tokens : {8192, 32768, 131072}) {
    for (int heads : {64, 128}) {
      time_case({.layout = LatentLayout::kBf16_1152,
                 .rows = 4096,
                 .heads = heads,
                 .topk = 2048,
                 .tokens = tokens},
                context, "");
    }
    for (LatentLayout layout :
         {LatentLayout::kFp8_576, LatentLayout::kFp8_644, LatentLayout::kFp8_656}) {
      time_case({.layout = layout, .rows = 4096, .heads = 8, .topk = 2048, .tokens = tokens},
                context, "");
    }
  }
  for (int heads : {16, 32, 64, 128}) {
    for (LatentLayout layout :
         {LatentLayout::kFp8_576, LatentLayout::kFp8_644, LatentLayout::kFp8_656}) {
      time_case({.layout = layout, .rows = 4096, .heads = heads, .topk = 2048, .tokens = 32768},
                context, "");
    }
  }
  for (int heads : {8, 64, 128}) {
    for (int rows : {1, 16, 64, 128}) {
      time_case({.layout = LatentLayout::kFp8_656,
                 .rows = rows,
                 .heads = heads,
                 .topk = 2048,
                 .tokens = 262144},
                context, "");
    }
  }
}

}  // namespace

void check_sparse_mla(Context& context) {
  if (!context.bench_only) check_all(context);
  if (context.bench) bench_all(context);
}

}  // namespace winnow::gpu_check
