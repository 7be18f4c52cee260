// Byte layouts of the paged caches: constexpr arithmetic, usable on host and device.
// A slot is page * page_size + offset (int32); every byte offset is 64-bit.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define WINNOW_HOST_DEVICE __host__ __device__
#else
#define WINNOW_HOST_DEVICE
#endif

namespace winnow::layout {

// Named by the bytes of one token at the real widths (kv_lora_rank 512, qk_rope_head_dim 64).
// C = kv_lora_rank, R = qk_rope_head_dim.
enum class LatentLayout : uint8_t {
  kF32,        // C + R fp32: reference arithmetic
  kBf16_1152,  // C + R bf16
  kFp8_656,    // C e4m3, ceil(C / 128) fp32 scales, R bf16
  kFp8_644,    // page: page_size rows of (C e4m3, R bf16), then page_size fp32 scales
  kFp8_576,    // C + R e4m3, one scale a layer (kept beside the cache)
};

// D = index_head_dim.
enum class IndexKeyLayout : uint8_t {
  kNone,      // layers without an indexer
  kF32,       // D fp32: reference arithmetic
  kBf16_256,  // D bf16
  kFp8_132,   // page: page_size rows of D e4m3, then page_size fp32 scales
};

// Channels that share one scale in kFp8_656 and in block-scaled weights.
inline constexpr int32_t kScaleGroup = 128;
// amax floor of every quantiser: a zero row gets this scale and stays zero (fault B34).
inline constexpr float kAmaxFloor = 1e-4f;
inline constexpr float kE4m3Max = 448.0f;

WINNOW_HOST_DEVICE constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct LatentGeometry {
  LatentLayout layout = LatentLayout::kF32;
  int32_t kv_lora_rank = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t page_size = 64;  // tokens; 64 on the GPU, 1 to 64 on the CPU

  WINNOW_HOST_DEVICE constexpr int32_t scale_groups() const {
    return static_cast<int32_t>(ceil_div(kv_lora_rank, kScaleGroup));
  }
  // Distance between two rows of a page.
  WINNOW_HOST_DEVICE constexpr int64_t row_bytes() const {
    const int64_t c = kv_lora_rank, r = qk_rope_head_dim;
    switch (layout) {
      case LatentLayout::kF32:
        return 4 * (c + r);
      case LatentLayout::kBf16_1152:
        return 2 * (c + r);
      case LatentLayout::kFp8_656:
        return c + 4 * scale_groups() + 2 * r;
      case LatentLayout::kFp8_644:
        return c + 2 * r;
      case LatentLayout::kFp8_576:
        return c + r;
    }
    return 0;
  }
  // Offset of the roped key inside a row.
  WINNOW_HOST_DEVICE constexpr int64_t rope_offset() const {
    const int64_t c = kv_lora_rank;
    switch (layout) {
      case LatentLayout::kF32:
        return 4 * c;
      case LatentLayout::kBf16_1152:
        return 2 * c;
      case LatentLayout::kFp8_656:
        return c + 4 * scale_groups();
      case LatentLayout::kFp8_644:
        return c;
      case LatentLayout::kFp8_576:
        return c;
    }
    return 0;
  }
  // kFp8_656: offset of the row's scales inside the row.
  WINNOW_HOST_DEVICE constexpr int64_t row_scales_offset() const { return kv_lora_rank; }
  // kFp8_644: offset of the page's scales inside the page.
  WINNOW_HOST_DEVICE constexpr int64_t page_scales_offset() const {
    return page_size * row_bytes();
  }
  WINNOW_HOST_DEVICE constexpr int64_t page_bytes() const {
    return page_size * row_bytes() + (layout == LatentLayout::kFp8_644 ? 4 * page_size : 0);
  }
  // For memory planning: bytes that one token costs in one layer.
  WINNOW_HOST_DEVICE constexpr int64_t bytes_per_token() const {
    return row_bytes() + (layout == LatentLayout::kFp8_644 ? 4 : 0);
  }
};

struct IndexKeyGeometry {
  IndexKeyLayout layout = IndexKeyLayout::kNone;
  int32_t index_head_dim = 0;
  int32_t page_size = 64;

  WINNOW_HOST_DEVICE constexpr int64_t row_bytes() const {
    switch (layout) {
      case IndexKeyLayout::kNone:
        return 0;
      case IndexKeyLayout::kF32:
        return 4 * static_cast<int64_t>(index_head_dim);
      case IndexKeyLayout::kBf16_256:
        return 2 * static_cast<int64_t>(index_head_dim);
      case IndexKeyLayout::kFp8_132:
        return index_head_dim;
    }
    return 0;
  }
  WINNOW_HOST_DEVICE constexpr int64_t page_scales_offset() const {
    return page_size * row_bytes();
  }
  WINNOW_HOST_DEVICE constexpr int64_t page_bytes() const {
    return page_size * row_bytes() + (layout == IndexKeyLayout::kFp8_132 ? 4 * page_size : 0);
  }
  WINNOW_HOST_DEVICE constexpr int64_t bytes_per_token() const {
    return row_bytes() + (layout == IndexKeyLayout::kFp8_132 ? 4 : 0);
  }
};

static_assert(LatentGeometry{LatentLayout::kBf16_1152, 512, 64}.bytes_per_token() == 1152);
static_assert(LatentGeometry{LatentLayout::kFp8_656, 512, 64}.bytes_per_token() == 656);
static_assert(LatentGeometry{LatentLayout::kFp8_644, 512, 64}.bytes_per_token() == 644);
static_assert(LatentGeometry{LatentLayout::kFp8_576, 512, 64}.bytes_per_token() == 576);
static_assert(IndexKeyGeometry{IndexKeyLayout::kFp8_132, 128}.bytes_per_token() == 132);
static_assert(IndexKeyGeometry{IndexKeyLayout::kFp8_132, 128}.page_bytes() == 8448);

inline const char* to_string(LatentLayout layout) {
  switch (layout) {
    case LatentLayout::kF32:
      return "latent_f32";
    case LatentLayout::kBf16_1152:
      return "latent_bf16_1152";
    case LatentLayout::kFp8_656:
      return "latent_fp8_656";
    case LatentLayout::kFp8_644:
      return "latent_fp8_644";
    case LatentLayout::kFp8_576:
      return "latent_fp8_576";
  }
  return "?";
}

inline const char* to_string(IndexKeyLayout layout) {
  switch (layout) {
    case IndexKeyLayout::kNone:
      return "none";
    case IndexKeyLayout::kF32:
      return "index_key_f32";
    case IndexKeyLayout::kBf16_256:
      return "index_key_bf16_256";
    case IndexKeyLayout::kFp8_132:
      return "index_key_fp8_132";
  }
  return "?";
}

}  // namespace winnow::layout
