#include "backends/cpu/latent_cache.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/rotary.h"
#include "base/error.h"
#include "layout/float_formats.h"

namespace winnow::backends {

namespace {

using layout::LatentGeometry;
using layout::LatentLayout;

struct RowPlace {
  uint8_t* row = nullptr;
  uint8_t* page_scale = nullptr;  // kFp8_644: the token's scale at the page's tail
};

RowPlace place_of(const ops::LatentCache& cache, int64_t slot) {
  const LatentGeometry& g = cache.geometry;
  const int64_t page = slot / g.page_size, offset = slot % g.page_size;
  uint8_t* base = static_cast<uint8_t*>(cache.data) + page * cache.page_stride_bytes;
  return {base + offset * g.row_bytes(), base + g.page_scales_offset() + 4 * offset};
}

// Row and page strides may be any number of bytes, so fp32 fields need not be aligned.
float load_f32(const uint8_t* from) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

void store_f32(uint8_t* to, float value) { std::memcpy(to, &value, sizeof(value)); }

void store_bf16(uint8_t* to, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = layout::f32_to_bf16(values[i]);
    std::memcpy(to + 2 * i, &bits, sizeof(bits));
  }
}

// [C latents | R roped key] of one row as fp32.
struct LatentRead {
  const ops::LatentCache& cache;
  const RowPlace& place;
  const KernelTable& kernels;
  float* out;

  const LatentGeometry& geometry() const { return cache.geometry; }
  int64_t c() const { return cache.geometry.kv_lora_rank; }
  int64_t r() const { return cache.geometry.qk_rope_head_dim; }
  void bf16_rope() const {
    kernels.unpack_bf16(place.row + geometry().rope_offset(), r(), out + c());
  }
};

void read_f32(const LatentRead& read) {
  std::memcpy(read.out, read.place.row, static_cast<size_t>(read.c() + read.r()) * sizeof(float));
}

void read_bf16_1152(const LatentRead& read) {
  read.kernels.unpack_bf16(read.place.row, read.c() + read.r(), read.out);
}

void read_fp8_656(const LatentRead& read) {
  const LatentGeometry& g = read.geometry();
  for (int64_t group = 0; group < g.scale_groups(); ++group) {
    const int64_t begin = group * layout::kScaleGroup;
    const int64_t n = std::min<int64_t>(layout::kScaleGroup, read.c() - begin);
    const float scale = load_f32(read.place.row + g.row_scales_offset() + 4 * group);
    read.kernels.unpack_e4m3(read.place.row + begin, n, scale, read.out + begin);
  }
  read.bf16_rope();
}

void read_fp8_644(const LatentRead& read) {
  read.kernels.unpack_e4m3(read.place.row, read.c(), load_f32(read.place.page_scale), read.out);
  read.bf16_rope();
}

void read_fp8_576(const LatentRead& read) {
  read.kernels.unpack_e4m3(read.place.row, read.c() + read.r(), read.cache.scale, read.out);
}

using LatentReader = Kernel<void(const LatentRead& read)>;

const LatentReader& reader_of(LatentLayout layout) {
  static constexpr LatentReader kF32 = {read_f32, "read_f32"};
  static constexpr LatentReader kBf16 = {read_bf16_1152, "read_bf16_1152"};
  static constexpr LatentReader k656 = {read_fp8_656, "read_fp8_656"};
  static constexpr LatentReader k644 = {read_fp8_644, "read_fp8_644"};
  static constexpr LatentReader k576 = {read_fp8_576, "read_fp8_576"};
  switch (layout) {
    case LatentLayout::kF32:
      return kF32;
    case LatentLayout::kBf16_1152:
      return kBf16;
    case LatentLayout::kFp8_656:
      return k656;
    case LatentLayout::kFp8_644:
      return k644;
    case LatentLayout::kFp8_576:
      return k576;
  }
  WINNOW_CHECK(false, "latent layout {}", static_cast<int>(layout));
}

}  // namespace

void read_latent(const ops::LatentCache& cache,
                 int64_t slot,
                 const KernelTable& kernels,
                 float* out) {
  reader_of(cache.geometry.layout)({cache, place_of(cache, slot), kernels, out});
}

const char* latent_reader_name(LatentLayout layout) { return reader_of(layout).name; }

void prefetch_latent(const ops::LatentCache& cache, int64_t slot) {
  const uint8_t* row = place_of(cache, slot).row;
  const int64_t bytes = cache.geometry.row_bytes();
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

void write_latent(const ops::LatentCache& cache, int64_t slot, const float* values) {
  const LatentGeometry& g = cache.geometry;
  const int64_t c = g.kv_lora_rank, r = g.qk_rope_head_dim;
  const RowPlace place = place_of(cache, slot);
  switch (g.layout) {
    case LatentLayout::kF32:
      std::memcpy(place.row, values, static_cast<size_t>(c + r) * sizeof(float));
      return;
    case LatentLayout::kBf16_1152:
      store_bf16(place.row, values, c + r);
      return;
    case LatentLayout::kFp8_656:
      for (int64_t group = 0; group < g.scale_groups(); ++group) {
        const int64_t begin = group * layout::kScaleGroup;
        const int64_t n = std::min<int64_t>(layout::kScaleGroup, c - begin);
        const float scale = e4m3_scale(values + begin, n, layout::kAmaxFloor);
        quantize_e4m3(values + begin, n, scale, place.row + begin);
        store_f32(place.row + g.row_scales_offset() + 4 * group, scale);
      }
      store_bf16(place.row + g.rope_offset(), values + c, r);
      return;
    case LatentLayout::kFp8_644: {
      const float scale = e4m3_scale(values, c, layout::kAmaxFloor);
      quantize_e4m3(values, c, scale, place.row);
      store_f32(place.page_scale, scale);
      store_bf16(place.row + g.rope_offset(), values + c, r);
      return;
    }
    case LatentLayout::kFp8_576:
      quantize_e4m3(values, c + r, cache.scale, place.row);
      return;
  }
}

void CpuBackend::append_latent(const ops::AppendLatentArgs& args) {
  const LatentGeometry& g = args.cache.geometry;
  const int64_t c = g.kv_lora_rank, width = c + g.qk_rope_head_dim;
  WINNOW_CHECK(args.rope.dim == g.qk_rope_head_dim, "rope dim {}", args.rope.dim);
  WINNOW_CHECK(args.cache.page_stride_bytes >= g.page_bytes(), "page stride {}",
               args.cache.page_stride_bytes);
  WINNOW_CHECK(g.layout != LatentLayout::kFp8_576 || args.cache.scale > 0, "cache scale {}",
               args.cache.scale);  // 0, negative or NaN (fault B35)
  for_items(args.rows->num_rows, args.rows->num_rows * width * 8, [&](int64_t t, int thread_idx) {
    const int64_t slot = args.rows->write_slots[t];
    if (slot < 0) return;
    WINNOW_CHECK(slot < latent_slots(args.cache), "slot {} of {}", slot, latent_slots(args.cache));
    const float* kv = static_cast<const float*>(args.kv) + t * width;
    float* row = scratch_of(thread_idx).latents.data();
    kernels_.rms_norm(kv, args.norm_weight, c, args.norm_eps, row);
    std::copy(kv + c, kv + width, row + c);
    rotate_interleaved(row + c, args.rope, args.rows->positions[t]);
    write_latent(args.cache, slot, row);
  });
}

void CpuBackend::copy_latent(const ops::CopyLatentArgs& args) {
  const LatentGeometry& g = args.cache.geometry;
  if (args.num_tokens == 0) return;
  WINNOW_CHECK(args.from_slot % g.page_size + args.num_tokens <= g.page_size &&
                   args.to_slot % g.page_size + args.num_tokens <= g.page_size,
               "copy of {} tokens from slot {} to {} leaves a page of {}", args.num_tokens,
               args.from_slot, args.to_slot, g.page_size);
  const RowPlace from = place_of(args.cache, args.from_slot);
  const RowPlace to = place_of(args.cache, args.to_slot);
  std::memmove(to.row, from.row, static_cast<size_t>(args.num_tokens * g.row_bytes()));
  if (g.layout == LatentLayout::kFp8_644) {
    std::memmove(to.page_scale, from.page_scale, static_cast<size_t>(args.num_tokens) * 4);
  }
}

}  // namespace winnow::backends
