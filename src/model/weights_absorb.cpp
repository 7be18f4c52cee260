#include "model/weights_absorb.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "layout/float_formats.h"
#include "layout/kv_layout.h"

namespace winnow::model {

namespace {

const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (int i = 0; i < 256; ++i) values[i] = layout::e4m3_to_f32(static_cast<uint8_t>(i));
    return values;
  }();
  return kValues;
}

// One row of kv_b in the output type.
template <typename T>
void read_row(const ops::LinearWeight& w, int64_t row, T* out) {
  const int64_t cols = w.in_features;
  if (w.dtype != DType::kE4m3) {
    std::memcpy(out, static_cast<const T*>(w.data) + row * cols, cols * sizeof(T));
    return;
  }
  const auto* codes = static_cast<const uint8_t*>(w.data) + row * cols;
  const float* scales =
      w.scale + row / layout::kScaleGroup * layout::ceil_div(cols, layout::kScaleGroup);
  for (int64_t c = 0; c < cols; ++c) {
    const float value = e4m3_values()[codes[c]] * scales[c / layout::kScaleGroup];
    if constexpr (sizeof(T) == 2) {
      out[c] = layout::f32_to_bf16(value);
    } else {
      out[c] = std::bit_cast<T>(value);
    }
  }
}

// T: the bits of an element, uint16_t or uint32_t.
template <typename T>
void split(
    const ops::LinearWeight& w, int64_t heads, int64_t nope, int64_t v_dim, AbsorbedKvB& out) {
  const int64_t latent = w.in_features;
  out.w_uk.resize(static_cast<size_t>(heads * latent * nope) * sizeof(T));
  out.w_uv.resize(static_cast<size_t>(heads * v_dim * latent) * sizeof(T));
  auto* uk = reinterpret_cast<T*>(out.w_uk.data());
  auto* uv = reinterpret_cast<T*>(out.w_uv.data());
  constexpr int64_t kTile = 32;  // rows transposed together: one cache line of each output row
  std::vector<T> rows(static_cast<size_t>(kTile * latent));
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * (nope + v_dim);
    T* uk_head = uk + head * latent * nope;
    for (int64_t begin = 0; begin < nope; begin += kTile) {
      const int64_t count = std::min(kTile, nope - begin);
      for (int64_t r = 0; r < count; ++r) read_row(w, first + begin + r, rows.data() + r * latent);
      for (int64_t c = 0; c < latent; ++c) {
        for (int64_t r = 0; r < count; ++r) uk_head[c * nope + begin + r] = rows[r * latent + c];
      }
    }
    for (int64_t r = 0; r < v_dim; ++r) {
      read_row(w, first + nope + r, uv + (head * v_dim + r) * latent);
    }
  }
}

}  // namespace

AbsorbedKvB split_kv_b(const ops::LinearWeight& kv_b,
                       int64_t num_heads,
                       int64_t qk_nope_head_dim,
                       int64_t v_head_dim,
                       bool keep_f32) {
  WINNOW_CHECK(kv_b.out_features == num_heads * (qk_nope_head_dim + v_head_dim), "{} rows",
               kv_b.out_features);
  AbsorbedKvB out;
  out.dtype = absorbed_dtype(kv_b.dtype, keep_f32);
  if (out.dtype == DType::kF32) {
    split<uint32_t>(kv_b, num_heads, qk_nope_head_dim, v_head_dim, out);
  } else {
    split<uint16_t>(kv_b, num_heads, qk_nope_head_dim, v_head_dim, out);
  }
  return out;
}

}  // namespace winnow::model
