#include "gpu/sparse_mla_cases.h"

#include <algorithm>

#include "layout/float_formats.h"

namespace winnow::gpu_check::mla {
namespace {

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
// measured. Rows row_step apart.
__global__ void reference_kernel(SparseMlaParams p,
                                 LatentLayout layout,
                                 int row_step,
                                 double* logits,
                                 double* out,
                                 double* lse,
                                 double* reach) {
  const int64_t row = int64_t{blockIdx.x / p.num_heads} * row_step;
  const int64_t index = row * p.num_heads + blockIdx.x % p.num_heads;
  const int len = p.lens[row];
  double* x = logits + int64_t{blockIdx.x} * p.slots_stride;
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

// What kernels::SparseMlaPlan::fp8_query says, a block for a row and head.
__global__ void round_queries_kernel(SparseMlaParams p,
                                     __nv_bfloat16* latent,
                                     __nv_bfloat16* rope) {
  const auto from = [&](int c) {
    return c < kC ? static_cast<const __nv_bfloat16*>(p.q_latent)[blockIdx.x * int64_t{kC} + c]
                  : static_cast<const __nv_bfloat16*>(p.q_rope)[blockIdx.x * int64_t{kR} + c - kC];
  };
  __shared__ unsigned high;
  if (threadIdx.x == 0) high = 0;
  __syncthreads();
  for (int c = threadIdx.x; c < kC + kR; c += blockDim.x) {
    atomicMax(&high, __float_as_uint(fabsf(__bfloat162float(from(c)))));
  }
  __syncthreads();
  const int up = high == 0 ? 0 : 7 - ilogbf(__uint_as_float(high));
  for (int c = threadIdx.x; c < kC + kR; c += blockDim.x) {
    // Nearest e4m3, ties to even: steps of 2^(exponent - 3), of 2^-9 below 2^-6.
    const float value = ldexpf(__bfloat162float(from(c)), up);
    const int exponent = value == 0 ? -6 : max(ilogbf(value), -6);
    const float rounded = ldexpf(rintf(ldexpf(value, 3 - exponent)), exponent - 3 - up);
    if (c < kC) {
      latent[blockIdx.x * int64_t{kC} + c] = __float2bfloat16(rounded);
    } else {
      rope[blockIdx.x * int64_t{kR} + c - kC] = __float2bfloat16(rounded);
    }
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

// group = 8, topk = 2048: 1 - overlap = (union - 2048) / (7 * 2048).
void choose_slots(const Case& c, uint64_t seed, std::vector<int32_t>& slots) {
  const auto tokens = static_cast<uint64_t>(c.tokens);
  const int64_t pages = c.tokens / kPage;
  std::vector<int32_t> page_of(static_cast<size_t>(pages));
  for (int64_t i = 0; i < pages; ++i) page_of[i] = static_cast<int32_t>(i);
  for (int64_t i = pages - 1; i > 0; --i) {
    std::swap(page_of[i], page_of[(uint64_t{hash32(seed + 7 * i)} * (i + 1)) >> 32]);
  }
  std::vector<uint64_t> chosen((tokens + 63) / 64);
  for (int t = 0; t < c.rows; ++t) {
    const int group = t / c.group, in_group = t % c.group;
    const auto core = static_cast<int>(c.topk * (c.mixed && group % 2 == 1 ? 0 : c.overlap) + 0.5f);
    // tokens is a power of two: an odd factor makes i -> position a permutation.
    const uint64_t factor = hash32(seed * 31 + group) | 1, shift = hash32(seed * 37 + group);
    std::fill(chosen.begin(), chosen.end(), 0);
    for (int j = 0; j < c.topk; ++j) {
      const uint64_t i = j < core ? j : j + uint64_t(in_group) * (c.topk - core);
      const uint64_t position = (i * factor + shift) % tokens;
      chosen[position / 64] |= uint64_t{1} << position % 64;
    }
    int32_t* to = slots.data() + static_cast<size_t>(t) * c.topk;
    for (uint64_t w = 0; w < chosen.size(); ++w) {
      for (uint64_t left = chosen[w]; left != 0; left &= left - 1) {
        const int32_t position = static_cast<int32_t>(w * 64) + __builtin_ctzll(left);
        *to++ = page_of[position / kPage] * kPage + position % kPage;
      }
    }
  }
}

}  // namespace

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
  if (c.group > 0) choose_slots(c, seed, slots);
  for (int t = 0; t < c.rows; ++t) {
    lens[t] = c.lens.empty() ? c.topk : c.lens[t % c.lens.size()];
    for (int j = 0; j < c.topk; ++j) {
      const uint64_t key = seed * 0x10000000ull + uint64_t(t) * c.topk + j;
      int32_t slot = c.group > 0 ? slots[static_cast<size_t>(t) * c.topk + j]
                                 : static_cast<int32_t>((uint64_t{hash32(key)} * c.tokens) >> 32);
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

Reference make_reference(const Case& c, const Data& d) {
  const int compared = (c.rows + c.row_step - 1) / c.row_step;
  DeviceArray<double> logits(static_cast<size_t>(compared) * c.heads * c.topk);
  Reference r{DeviceArray<double>(d.out.size()), DeviceArray<double>(d.lse.size()),
              DeviceArray<double>(d.lse.size())};
  CUDA_OK(cudaMemset(r.reach.get(), 0, r.reach.size() * sizeof(double)));
  SparseMlaParams params = d.params;
  DeviceArray<__nv_bfloat16> latent(c.fp8_query ? d.q_latent.size() : 0),
      rope(c.fp8_query ? d.q_rope.size() : 0);
  if (c.fp8_query) {
    round_queries_kernel<<<c.rows * c.heads, 128>>>(params, latent.get(), rope.get());
    params.q_latent = latent.get(), params.q_rope = rope.get();
  }
  reference_kernel<<<compared * c.heads, 128>>>(params, c.layout, c.row_step, logits.get(),
                                                r.out.get(), r.lse.get(), r.reach.get());
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaDeviceSynchronize());
  return r;
}

int multiprocessors() {
  int count = 0;
  CUDA_OK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

SparseMlaPlan make_plan(const Case& c, bool invariant) {
  return kernels::sm90::plan_sparse_mla(c.layout, c.rows, c.heads, c.topk, multiprocessors(),
                                        invariant, c.fp8_query);
}

void run(const SparseMlaParams& params,
         const SparseMlaPlan& plan,
         void* workspace,
         cudaStream_t stream) {
  CUDA_OK(
      static_cast<cudaError_t>(kernels::sm90::sparse_mla_groups(params, plan, workspace, stream)));
  CUDA_OK(static_cast<cudaError_t>(kernels::sm90::sparse_mla(params, plan, workspace, stream)));
}

std::string describe(const Case& c) {
  return std::string(layout::to_string(c.layout)) + " rows " + std::to_string(c.rows) + " heads " +
         std::to_string(c.heads) + " topk " + std::to_string(c.topk) + " tokens " +
         std::to_string(c.tokens) + (c.holes ? " holes" : "") +
         (c.group > 0 ? " overlap " + std::to_string(static_cast<int>(c.overlap * 100 + 0.5f))
                      : "") +
         (c.mixed ? " mixed" : "") + (c.fp8_query ? " e4m3 queries" : "");
}

}  // namespace winnow::gpu_check::mla
