#include "backends/cpu/index_keys.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/index_numerics.h"
#include "base/error.h"
#include "layout/float_formats.h"

namespace winnow::backends {

namespace {

using layout::IndexKeyLayout;

struct KeyPlace {
  uint8_t* row = nullptr;
  uint8_t* scale = nullptr;  // kFp8_132: at the page's tail
};

KeyPlace place_of(const ops::IndexKeyCache& cache, int64_t slot) {
  const layout::IndexKeyGeometry& g = cache.geometry;
  const int64_t page = slot / g.page_size, offset = slot % g.page_size;
  uint8_t* base = static_cast<uint8_t*>(cache.data) + page * cache.page_stride_bytes;
  return {base + offset * g.row_bytes(), base + g.page_scales_offset() + 4 * offset};
}

// count keys that lie one behind the other, and their scales.
struct KeyRead {
  const KeyPlace& place;
  int64_t count;
  int64_t values;
  const KernelTable& kernels;
  float* out;
  float* scales;
};

void read_f32(const KeyRead& read) {
  std::fill_n(read.scales, read.count, 1.0f);
  std::memcpy(read.out, read.place.row, static_cast<size_t>(read.values) * sizeof(float));
}

void read_bf16_256(const KeyRead& read) {
  std::fill_n(read.scales, read.count, 1.0f);
  read.kernels.unpack_bf16(read.place.row, read.values, read.out);
}

void read_fp8_132(const KeyRead& read) {
  read.kernels.unpack_e4m3(read.place.row, read.values, 1.0f, read.out);
  std::memcpy(read.scales, read.place.scale, static_cast<size_t>(read.count) * sizeof(float));
}

using KeyReader = Kernel<void(const KeyRead& read)>;

const KeyReader& reader_of(IndexKeyLayout layout) {
  static constexpr KeyReader kF32 = {read_f32, "read_f32"};
  static constexpr KeyReader kBf16 = {read_bf16_256, "read_bf16_256"};
  static constexpr KeyReader kFp8 = {read_fp8_132, "read_fp8_132"};
  switch (layout) {
    case IndexKeyLayout::kNone:
      break;
    case IndexKeyLayout::kF32:
      return kF32;
    case IndexKeyLayout::kBf16_256:
      return kBf16;
    case IndexKeyLayout::kFp8_132:
      return kFp8;
  }
  WINNOW_CHECK(false, "layer without index keys");
}

}  // namespace

void read_index_keys(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     int64_t count,
                     const KernelTable& kernels,
                     float* out,
                     float* scales) {
  const int64_t values = count * cache.geometry.index_head_dim;
  reader_of(cache.geometry.layout)({place_of(cache, slot), count, values, kernels, out, scales});
}

const char* index_key_reader_name(IndexKeyLayout layout) { return reader_of(layout).name; }

void prefetch_index_keys(const ops::IndexKeyCache& cache, int64_t slot, int64_t count) {
  const uint8_t* row = place_of(cache, slot).row;
  const int64_t bytes = count * cache.geometry.row_bytes();
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

void write_index_key(const ops::IndexKeyCache& cache,
                     int64_t slot,
                     const float* values,
                     float scale) {
  const int64_t dim = cache.geometry.index_head_dim;
  const KeyPlace place = place_of(cache, slot);
  switch (cache.geometry.layout) {
    case IndexKeyLayout::kNone:
      WINNOW_CHECK(false, "layer without index keys");
      break;
    case IndexKeyLayout::kF32:
      std::memcpy(place.row, values, static_cast<size_t>(dim) * sizeof(float));
      break;
    case IndexKeyLayout::kBf16_256:
      for (int64_t i = 0; i < dim; ++i) {
        const uint16_t bits = layout::f32_to_bf16(values[i]);
        std::memcpy(place.row + 2 * i, &bits, sizeof(bits));
      }
      break;
    case IndexKeyLayout::kFp8_132:
      quantize_e4m3(values, dim, scale, place.row);
      std::memcpy(place.scale, &scale, sizeof(scale));
      break;
  }
}

// LayerNorm with its own eps and bias (fault B05). Two passes: mean, then variance around it.
static void layer_norm(
    const float* x, const float* weight, const float* bias, int64_t dim, float eps, float* out) {
  float mean = 0, variance = 0;
  for (int64_t i = 0; i < dim; ++i) mean += x[i];
  mean /= static_cast<float>(dim);
  for (int64_t i = 0; i < dim; ++i) {
    out[i] = x[i] - mean;
    variance += out[i] * out[i];
  }
  const float factor = 1.0f / std::sqrt(variance / static_cast<float>(dim) + eps);
  for (int64_t i = 0; i < dim; ++i) out[i] = out[i] * factor * weight[i] + bias[i];
}

void CpuBackend::append_index_key(const ops::AppendIndexKeyArgs& args) {
  const int64_t dim = args.cache.geometry.index_head_dim;
  check_numerics(args.numerics, args.rope, dim);
  WINNOW_CHECK(args.cache.page_stride_bytes >= args.cache.geometry.page_bytes(), "page stride {}",
               args.cache.page_stride_bytes);
  const int64_t num_slots = int64_t{args.cache.num_pages} * args.cache.geometry.page_size;
  for_items(args.rows->num_rows, args.rows->num_rows * dim * 16, [&](int64_t t, int) {
    const int64_t slot = args.rows->write_slots[t];
    if (slot < 0) return;
    WINNOW_CHECK(slot < num_slots, "slot {} of {}", slot, num_slots);
    float key[kMaxIndexHeadDim];
    layer_norm(static_cast<const float*>(args.k) + t * dim, args.norm_weight, args.norm_bias, dim,
               args.norm_eps, key);
    rotate_and_mix(key, dim, args.rope, args.rows->positions[t], args.numerics);
    write_index_key(args.cache, slot, key, index_scale(key, dim, args.numerics.ue8m0_scales));
  });
}

void CpuBackend::copy_index_keys(const ops::CopyIndexKeysArgs& args) {
  const layout::IndexKeyGeometry& g = args.cache.geometry;
  if (args.num_tokens == 0) return;
  WINNOW_CHECK(args.from_slot % g.page_size + args.num_tokens <= g.page_size &&
                   args.to_slot % g.page_size + args.num_tokens <= g.page_size,
               "copy of {} tokens from slot {} to {} leaves a page of {}", args.num_tokens,
               args.from_slot, args.to_slot, g.page_size);
  const KeyPlace from = place_of(args.cache, args.from_slot);
  const KeyPlace to = place_of(args.cache, args.to_slot);
  std::memmove(to.row, from.row, static_cast<size_t>(args.num_tokens * g.row_bytes()));
  if (g.layout == IndexKeyLayout::kFp8_132) {
    std::memmove(to.scale, from.scale, static_cast<size_t>(args.num_tokens) * 4);
  }
}

}  // namespace winnow::backends
