// What the cache writers store against sums in double on the host: every code within half a step of
// the exact value, every scale, and not one byte more than the row's own.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu/gpu_check.h"
#include "gpu/rounding.h"
#include "kernels/cache_writes.h"
#include "layout/float_formats.h"

namespace winnow::gpu_check {
namespace {

using kernels::Activation;
using layout::IndexKeyLayout;
using layout::LatentLayout;

constexpr int32_t kPage = 64;
constexpr int32_t kMaxPositions = 5000;

float uniform(uint64_t seed) {
  return static_cast<float>(static_cast<int32_t>(hash32(seed))) * 0x1p-31f;
}

struct Rope {
  std::vector<float> cos, sin;
  DeviceArray<float> d_cos, d_sin;
  int32_t dim;

  explicit Rope(int32_t rope_dim) : dim(rope_dim) {
    for (int32_t p = 0; p < kMaxPositions; ++p) {
      for (int32_t i = 0; i < dim / 2; ++i) {
        const double angle = p * std::pow(10000.0, -2.0 * i / dim);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    d_cos = DeviceArray<float>(cos);
    d_sin = DeviceArray<float>(sin);
  }
  kernels::RopeView view() const { return {d_cos.get(), d_sin.get(), dim}; }
  void rotate(std::vector<double>& v, size_t at, int32_t position, bool interleave) const {
    const auto half = static_cast<size_t>(dim / 2);
    for (size_t i = 0; i < half; ++i) {
      const size_t first = at + (interleave ? 2 * i : i),
                   second = interleave ? first + 1 : first + half;
      const double c = static_cast<double>(cos[static_cast<size_t>(position) * half + i]);
      const double s = static_cast<double>(sin[static_cast<size_t>(position) * half + i]);
      const double a = v[first], b = v[second];
      v[first] = a * c - b * s;
      v[second] = b * c + a * s;
    }
  }
};

// Rows with shuffled slots; every seventh writes nowhere.
struct Rows {
  std::vector<int32_t> positions, slots;
  DeviceArray<int32_t> d_positions, d_slots;

  Rows(int32_t count, int32_t num_pages) {
    for (int32_t t = 0; t < count; ++t) {
      positions.push_back(
          static_cast<int32_t>(hash32(static_cast<uint64_t>(t) + 9) % kMaxPositions));
      // An odd multiplier modulo a power of two: no slot twice.
      const uint32_t slots_in_pool = static_cast<uint32_t>(num_pages) * kPage;
      slots.push_back(t % 7 == 3 ? -1
                                 : static_cast<int32_t>(slots_in_pool - 1 -
                                                        static_cast<uint32_t>(t) * 37u % 65536u %
                                                            slots_in_pool));
    }
    d_positions = DeviceArray<int32_t>(positions);
    d_slots = DeviceArray<int32_t>(slots);
  }
  kernels::WriteRows view() const {
    return {static_cast<int32_t>(positions.size()), d_positions.get(), d_slots.get()};
  }
};

struct Input {
  std::vector<float> values;
  DeviceArray<uint16_t> bf16;
  DeviceArray<float> f32;

  Input(size_t count, uint64_t seed, size_t zero_row_width) {
    std::vector<uint16_t> bits;
    for (size_t i = 0; i < count; ++i) {
      const bool zero = zero_row_width != 0 && i / zero_row_width % 11 == 5;
      bits.push_back(layout::f32_to_bf16(zero ? 0.0f : 3.0f * uniform(seed + i)));
      values.push_back(layout::bf16_to_f32(bits.back()));
    }
    bf16 = DeviceArray<uint16_t>(bits);
    f32 = DeviceArray<float>(values);
  }
  const void* get(Activation a) const {
    return a == Activation::kBf16 ? static_cast<const void*>(bf16.get()) : f32.get();
  }
};

// "" or what is wrong with a latent row; marks the bytes it owns.
std::string check_latent_row(const layout::LatentGeometry& g,
                             const std::vector<double>& want,
                             const std::vector<uint8_t>& cache,
                             int64_t slot,
                             float layer_scale,
                             std::vector<uint8_t>& owned) {
  const auto c = static_cast<size_t>(g.kv_lora_rank), width = want.size();
  const int64_t page = slot / kPage * g.page_bytes(), offset = slot % kPage;
  const uint8_t* row = cache.data() + page + offset * g.row_bytes();
  std::fill_n(owned.begin() + page + offset * g.row_bytes(), g.row_bytes(), 1);
  for (size_t i = 0; i < width; ++i) {
    bool ok = false;
    const uint8_t* rope = row + g.rope_offset() + 2 * (static_cast<int64_t>(i) - g.kv_lora_rank);
    switch (g.layout) {
      case LatentLayout::kF32:
        ok = close_f32(row + 4 * i, want[i]);
        break;
      case LatentLayout::kBf16_1152:
        ok = close_bf16(row + 2 * i, want[i]);
        break;
      case LatentLayout::kFp8_576:
        ok = close_e4m3(row[i], layer_scale, want[i]);
        break;
      case LatentLayout::kFp8_656:
        ok = i >= c ? close_bf16(rope, want[i])
                    : close_e4m3(row[i], f32_at(row + c + i / 128 * 4), want[i]);
        break;
      case LatentLayout::kFp8_644:
        ok = i >= c ? close_bf16(rope, want[i])
                    : close_e4m3(row[i],
                                 f32_at(cache.data() + page + g.page_scales_offset() + 4 * offset),
                                 want[i]);
        break;
    }
    if (!ok) return "channel " + std::to_string(i) + " want " + std::to_string(want[i]);
  }
  if (g.layout == LatentLayout::kFp8_656) {
    for (size_t group = 0; group * 128 < c; ++group) {
      if (!close_scale(f32_at(row + c + 4 * group),
                       largest(want, group * 128, std::min(c, group * 128 + 128)))) {
        return "scale of group " + std::to_string(group);
      }
    }
  }
  if (g.layout == LatentLayout::kFp8_644) {
    const int64_t at = page + g.page_scales_offset() + 4 * offset;
    std::fill_n(owned.begin() + at, 4, 1);
    if (!close_scale(f32_at(cache.data() + at), largest(want, 0, c))) return "scale of the token";
  }
  return "";
}

std::string check_untouched(const std::vector<uint8_t>& cache, const std::vector<uint8_t>& owned) {
  for (size_t i = 0; i < cache.size(); ++i) {
    if (owned[i] == 0 && cache[i] != 0xff) return "byte " + std::to_string(i) + " was written";
  }
  return "";
}

void check_latent(Context& context,
                  LatentLayout latent,
                  int32_t c,
                  int32_t r,
                  Activation activation,
                  int32_t num_rows) {
  const layout::LatentGeometry g{latent, c, r, kPage};
  const int32_t num_pages = 1024;
  const Rope rope(r);
  const Rows rows(num_rows, num_pages);
  const auto width = static_cast<size_t>(c + r);
  const Input kv(width * static_cast<size_t>(num_rows), 1, width);
  std::vector<float> weight;
  for (int32_t i = 0; i < c; ++i)
    weight.push_back(1.0f + 0.5f * uniform(static_cast<uint64_t>(i) + 777));
  const DeviceArray<float> d_weight(weight);
  DeviceArray<uint8_t> cache(static_cast<size_t>(num_pages * g.page_bytes()));
  const float layer_scale = 0.02f;
  CUDA_OK(kernels::portable::append_latent({.rows = rows.view(),
                                            .activation = activation,
                                            .kv = kv.get(activation),
                                            .norm_weight = d_weight.get(),
                                            .norm_eps = 1e-6f,
                                            .rope = rope.view(),
                                            .geometry = g,
                                            .cache = cache.get(),
                                            .page_stride_bytes = g.page_bytes(),
                                            .scale = layer_scale},
                                           nullptr));
  const std::vector<uint8_t> got = cache.download();
  std::vector<uint8_t> owned(got.size(), 0);
  std::string wrong;
  for (size_t t = 0; t < rows.slots.size() && wrong.empty(); ++t) {
    if (rows.slots[t] < 0) continue;
    std::vector<double> want(width);
    double squares = 0;
    for (size_t i = 0; i < width; ++i) want[i] = static_cast<double>(kv.values[t * width + i]);
    for (size_t i = 0; i < static_cast<size_t>(c); ++i) squares += want[i] * want[i];
    const double factor = 1 / std::sqrt(squares / c + 1e-6);
    for (size_t i = 0; i < static_cast<size_t>(c); ++i)
      want[i] *= factor * static_cast<double>(weight[i]);
    rope.rotate(want, static_cast<size_t>(c), rows.positions[t], true);
    wrong = check_latent_row(g, want, got, rows.slots[t], layer_scale, owned);
    if (!wrong.empty()) wrong += " of row " + std::to_string(t);
  }
  if (wrong.empty()) wrong = check_untouched(got, owned);
  context.expect(wrong.empty(),
                 std::string("append_latent ") + layout::to_string(latent) + " " +
                     std::to_string(c) + "+" + std::to_string(r) +
                     (activation == Activation::kF32 ? " f32" : " bf16"),
                 wrong);
}

void hadamard(std::vector<double>& v) {
  const std::vector<double> from = v;
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = 0;
    for (size_t j = 0; j < v.size(); ++j) {
      v[i] += (__builtin_popcountll(i & j) % 2 == 0 ? 1 : -1) * from[j];
    }
    v[i] /= std::sqrt(static_cast<double>(v.size()));
  }
}

struct VectorCase {
  int32_t dim, rope_dim;
  kernels::IndexRounding rounding;
  Activation activation = Activation::kBf16;
};

std::string name_of(const VectorCase& c) {
  return std::to_string(c.dim) + " rope " + std::to_string(c.rope_dim) +
         (c.rounding.rope_interleave ? "" : " half-split") +
         (c.rounding.hadamard ? " hadamard" : "") + (c.rounding.ue8m0_scales ? " ue8m0" : "") +
         (c.activation == Activation::kF32 ? " f32" : "");
}

void check_key(Context& context, IndexKeyLayout key_layout, const VectorCase& c, int32_t num_rows) {
  const layout::IndexKeyGeometry g{key_layout, c.dim, kPage};
  const int32_t num_pages = 1024;
  const Rope rope(c.rope_dim);
  const Rows rows(num_rows, num_pages);
  const auto dim = static_cast<size_t>(c.dim);
  const Input k(dim * static_cast<size_t>(num_rows), 5, dim);
  std::vector<float> weight, bias;
  for (size_t i = 0; i < dim; ++i) {
    weight.push_back(1.0f + 0.5f * uniform(i + 31));
    bias.push_back(0.1f * uniform(i + 91));
  }
  const DeviceArray<float> d_weight(weight), d_bias(bias);
  DeviceArray<uint8_t> cache(static_cast<size_t>(num_pages * g.page_bytes()));
  CUDA_OK(kernels::portable::append_index_key({.rows = rows.view(),
                                               .activation = c.activation,
                                               .k = k.get(c.activation),
                                               .norm_weight = d_weight.get(),
                                               .norm_bias = d_bias.get(),
                                               .norm_eps = 1e-6f,
                                               .rope = rope.view(),
                                               .rounding = c.rounding,
                                               .geometry = g,
                                               .cache = cache.get(),
                                               .page_stride_bytes = g.page_bytes()},
                                              nullptr));
  const std::vector<uint8_t> got = cache.download();
  std::vector<uint8_t> owned(got.size(), 0);
  std::string wrong;
  for (size_t t = 0; t < rows.slots.size() && wrong.empty(); ++t) {
    if (rows.slots[t] < 0) continue;
    std::vector<double> want(dim);
    double mean = 0, variance = 0;
    for (size_t i = 0; i < dim; ++i) want[i] = static_cast<double>(k.values[t * dim + i]);
    for (const double x : want) mean += x / static_cast<double>(dim);
    for (const double x : want) variance += (x - mean) * (x - mean) / static_cast<double>(dim);
    for (size_t i = 0; i < dim; ++i) {
      want[i] = (want[i] - mean) / std::sqrt(variance + 1e-6) * static_cast<double>(weight[i]) +
                static_cast<double>(bias[i]);
    }
    rope.rotate(want, 0, rows.positions[t], c.rounding.rope_interleave);
    if (c.rounding.hadamard) hadamard(want);
    const int64_t page = rows.slots[t] / kPage * g.page_bytes(), offset = rows.slots[t] % kPage;
    const uint8_t* row = got.data() + page + offset * g.row_bytes();
    std::fill_n(owned.begin() + page + offset * g.row_bytes(), g.row_bytes(), 1);
    float scale = 1;
    if (key_layout == IndexKeyLayout::kFp8_132) {
      const int64_t at = page + g.page_scales_offset() + 4 * offset;
      std::fill_n(owned.begin() + at, 4, 1);
      scale = f32_at(got.data() + at);
      if (!close_scale(scale, largest(want, 0, dim), c.rounding.ue8m0_scales)) wrong = "scale";
    }
    for (size_t i = 0; i < dim; ++i) {
      const bool ok = key_layout == IndexKeyLayout::kF32 ? close_f32(row + 4 * i, want[i])
                      : key_layout == IndexKeyLayout::kBf16_256
                          ? close_bf16(row + 2 * i, want[i])
                          : close_e4m3(row[i], scale, want[i]);
      if (!ok) wrong = "value " + std::to_string(i) + " want " + std::to_string(want[i]);
    }
    if (!wrong.empty()) wrong += " of row " + std::to_string(t);
  }
  if (wrong.empty()) wrong = check_untouched(got, owned);
  context.expect(
      wrong.empty(),
      std::string("append_index_key ") + layout::to_string(key_layout) + " " + name_of(c), wrong);
}

void check_query(Context& context,
                 kernels::IndexFormat format,
                 const VectorCase& c,
                 int32_t num_rows,
                 int32_t heads) {
  const Rope rope(c.rope_dim);
  const Rows rows(num_rows, 1024);
  const auto dim = static_cast<size_t>(c.dim);
  const size_t vectors = static_cast<size_t>(num_rows * heads);
  const Input q(dim * vectors, 50, dim);
  std::vector<float> gates;
  for (size_t i = 0; i < vectors; ++i) gates.push_back(uniform(i + 4444));
  const DeviceArray<float> d_gates(gates);
  const size_t bytes = format == kernels::IndexFormat::kF32    ? 4
                       : format == kernels::IndexFormat::kBf16 ? 2
                                                               : 1;
  DeviceArray<uint8_t> out(dim * vectors * bytes);
  DeviceArray<float> head_weights(vectors);
  CUDA_OK(kernels::portable::index_query({.rows = rows.view(),
                                          .activation = c.activation,
                                          .q = q.get(c.activation),
                                          .gates = d_gates.get(),
                                          .rope = rope.view(),
                                          .rounding = c.rounding,
                                          .format = format,
                                          .index_n_heads = heads,
                                          .index_head_dim = c.dim,
                                          .q_out = out.get(),
                                          .head_weights = head_weights.get()},
                                         nullptr));
  const std::vector<uint8_t> got = out.download();
  const std::vector<float> weights = head_weights.download();
  std::string wrong;
  for (size_t i = 0; i < vectors && wrong.empty(); ++i) {
    std::vector<double> want(dim);
    for (size_t d = 0; d < dim; ++d) want[d] = static_cast<double>(q.values[i * dim + d]);
    rope.rotate(want, 0, rows.positions[i / static_cast<size_t>(heads)],
                c.rounding.rope_interleave);
    if (c.rounding.hadamard) hadamard(want);
    const double factor =
        static_cast<double>(gates[i]) / std::sqrt(static_cast<double>(heads) * c.dim);
    float scale = 1;
    if (format == kernels::IndexFormat::kFp8) {
      scale = static_cast<float>(static_cast<double>(weights[i]) / factor);
      if (c.rounding.ue8m0_scales) scale = std::exp2(std::round(std::log2(scale)));
      if (!close_scale(scale, largest(want, 0, dim), c.rounding.ue8m0_scales))
        wrong = "head weight";
    } else if (std::fabs(static_cast<double>(weights[i]) - factor) > std::fabs(factor) * 1e-5) {
      wrong = "head weight";
    }
    for (size_t d = 0; d < dim; ++d) {
      const uint8_t* at = got.data() + (i * dim + d) * bytes;
      const bool ok = bytes == 4   ? close_f32(at, want[d])
                      : bytes == 2 ? close_bf16(at, want[d])
                                   : close_e4m3(*at, scale, want[d]);
      if (!ok) wrong = "value " + std::to_string(d) + " want " + std::to_string(want[d]);
    }
    if (!wrong.empty()) wrong += " of vector " + std::to_string(i);
  }
  context.expect(wrong.empty(), "index_query format " + std::to_string(bytes) + " " + name_of(c),
                 wrong);
}

void bench_writes(Context& context, int32_t num_rows) {
  const Rope rope(64);
  const Rows rows(num_rows, std::max(1024, num_rows / kPage * 2));
  const auto count = static_cast<size_t>(num_rows);
  DeviceArray<uint16_t> kv(count * 576), q(count * 32 * 128), k(count * 128);
  CUDA_OK(cudaMemset(kv.get(), 0x3f, kv.size() * 2));
  CUDA_OK(cudaMemset(q.get(), 0x3f, q.size() * 2));
  CUDA_OK(cudaMemset(k.get(), 0x3f, k.size() * 2));
  const DeviceArray<float> ones(std::vector<float>(512, 1.0f));
  DeviceArray<float> gates(count * 32), weights(count * 32);
  DeviceArray<uint8_t> q_out(count * 32 * 128);
  const int64_t pages = std::max(1024, num_rows / kPage * 2);
  const auto report = [&](const char* name, double bytes,
                          const std::function<void(cudaStream_t)>& call) {
    const std::string full = std::string(name) + "_" + std::to_string(num_rows);
    if (!context.wants(full)) return;
    const float us = us_in_graph([&](cudaStream_t s, int) { call(s); }, 20);
    context.record(full, {.graph_us = us, .bytes = bytes});
  };
  for (const LatentLayout latent : {LatentLayout::kBf16_1152, LatentLayout::kFp8_656,
                                    LatentLayout::kFp8_644, LatentLayout::kFp8_576}) {
    const layout::LatentGeometry g{latent, 512, 64, kPage};
    DeviceArray<uint8_t> cache(static_cast<size_t>(pages * g.page_bytes()));
    report(layout::to_string(latent),
           num_rows * (1152.0 + static_cast<double>(g.bytes_per_token()) + 256 + 8),
           [&](cudaStream_t s) {
             CUDA_OK(kernels::portable::append_latent({.rows = rows.view(),
                                                       .kv = kv.get(),
                                                       .norm_weight = ones.get(),
                                                       .norm_eps = 1e-6f,
                                                       .rope = rope.view(),
                                                       .geometry = g,
                                                       .cache = cache.get(),
                                                       .page_stride_bytes = g.page_bytes()},
                                                      s));
           });
  }
  const layout::IndexKeyGeometry g{IndexKeyLayout::kFp8_132, 128, kPage};
  DeviceArray<uint8_t> cache(static_cast<size_t>(pages * g.page_bytes()));
  for (const bool hadamard_on : {false, true}) {
    const kernels::IndexRounding rounding{.rope_interleave = !hadamard_on, .hadamard = hadamard_on};
    report(hadamard_on ? "index_key_fp8_132 hadamard" : "index_key_fp8_132",
           num_rows * (256.0 + 132 + 256 + 8), [&](cudaStream_t s) {
             CUDA_OK(kernels::portable::append_index_key({.rows = rows.view(),
                                                          .k = k.get(),
                                                          .norm_weight = ones.get(),
                                                          .norm_bias = ones.get(),
                                                          .rope = rope.view(),
                                                          .rounding = rounding,
                                                          .geometry = g,
                                                          .cache = cache.get(),
                                                          .page_stride_bytes = g.page_bytes()},
                                                         s));
           });
    report(hadamard_on ? "index_query hadamard" : "index_query",
           num_rows * (32 * (256.0 + 128 + 8) + 256), [&](cudaStream_t s) {
             CUDA_OK(kernels::portable::index_query({.rows = rows.view(),
                                                     .q = q.get(),
                                                     .gates = gates.get(),
                                                     .rope = rope.view(),
                                                     .rounding = rounding,
                                                     .index_n_heads = 32,
                                                     .index_head_dim = 128,
                                                     .q_out = q_out.get(),
                                                     .head_weights = weights.get()},
                                                    s));
           });
  }
}

}  // namespace

void check_cache_writes(Context& context) {
  const int32_t num_rows = context.small ? 70 : 1500;
  for (const LatentLayout latent :
       {LatentLayout::kF32, LatentLayout::kBf16_1152, LatentLayout::kFp8_656,
        LatentLayout::kFp8_644, LatentLayout::kFp8_576}) {
    for (const Activation a : {Activation::kBf16, Activation::kF32}) {
      check_latent(context, latent, 512, 64, a, num_rows);
      check_latent(context, latent, 32, 8, a, num_rows);
      check_latent(context, latent, 320, 32, a, 33);
      check_latent(context, latent, 1024, 128, a, 9);
    }
  }
  const VectorCase cases[] = {
      {128, 64, {.rope_interleave = true}},
      {128, 64, {.rope_interleave = false, .hadamard = true, .ue8m0_scales = true}},
      {128, 64, {.rope_interleave = true, .hadamard = true}, Activation::kF32},
      {128, 128, {.rope_interleave = false}},
      {16, 8, {.rope_interleave = true}, Activation::kF32},
      {16, 8, {.rope_interleave = false, .hadamard = true, .ue8m0_scales = true}},
      {32, 32, {.rope_interleave = false}},
      {64, 16, {.rope_interleave = true, .hadamard = true}},
      {256, 64, {.rope_interleave = false}},
  };
  for (const VectorCase& c : cases) {
    for (const IndexKeyLayout key :
         {IndexKeyLayout::kF32, IndexKeyLayout::kBf16_256, IndexKeyLayout::kFp8_132}) {
      check_key(context, key, c, num_rows);
    }
    for (const auto format :
         {kernels::IndexFormat::kF32, kernels::IndexFormat::kBf16, kernels::IndexFormat::kFp8}) {
      check_query(context, format, c, 37, 32);
    }
  }
  if (context.bench) {
    for (const int32_t n : {1, 64, 1024, 4096, 16384}) bench_writes(context, n);
  }
}

}  // namespace winnow::gpu_check
