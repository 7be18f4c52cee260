#include "backends/cpu/index_keys.h"

#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/quantize.h"
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

}  // namespace

float read_index_key(const ops::IndexKeyCache& cache, int64_t slot, float* out) {
  const int64_t dim = cache.geometry.index_head_dim;
  const KeyPlace place = place_of(cache, slot);
  float scale = 1.0f;
  switch (cache.geometry.layout) {
    case IndexKeyLayout::kNone:
      WINNOW_CHECK(false, "layer without index keys");
      break;
    case IndexKeyLayout::kF32:
      std::memcpy(out, place.row, static_cast<size_t>(dim) * sizeof(float));
      break;
    case IndexKeyLayout::kBf16_256:
      for (int64_t i = 0; i < dim; ++i) {
        uint16_t bits;
        std::memcpy(&bits, place.row + 2 * i, sizeof(bits));
        out[i] = layout::bf16_to_f32(bits);
      }
      break;
    case IndexKeyLayout::kFp8_132:
      for (int64_t i = 0; i < dim; ++i) out[i] = layout::e4m3_to_f32(place.row[i]);
      std::memcpy(&scale, place.scale, sizeof(scale));
      break;
  }
  return scale;
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
