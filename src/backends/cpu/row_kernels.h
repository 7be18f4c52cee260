// Norms, activations, unpacking and transposition of rows. Included by kernels_<isa>.cpp only.
#include "backends/cpu/kernels.h"

namespace winnow::backends::WINNOW_ISA {
namespace {

// Four accumulators, then fixed trees: a row's own width alone decides the order.
WINNOW_INLINE float sum_of_squares(const float* x, int64_t width) {
  Floats acc[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int a = 0; a < 4; ++a) {
      const Floats v = load(x + i + a * kLanes);
      acc[a] = fma(v, v, acc[a]);
    }
  }
  float rest = 0;
  for (; i < width; ++i) rest += x[i] * x[i];
  return sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3])) + rest;
}

void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* out) {
  const float mean = sum_of_squares(x, width) / static_cast<float>(width);
  const float factor = 1.0f / __builtin_sqrtf(mean + eps);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    store(out + i, load(x + i) * splat(factor) * load(weight + i));
  }
  for (; i < width; ++i) out[i] = x[i] * factor * weight[i];
}

void add(float* sum, const float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

void add_scaled(float* sum, const float* x, float factor, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(sum + i, load(sum + i) + load(x + i) * splat(factor));
  }
  for (; i < count; ++i) sum[i] += x[i] * factor;
}

WINNOW_INLINE Floats silu_times(Floats gate, Floats up) {
  const Floats e = exp_nonpositive(-abs(gate));
  const Floats one = splat(1.0f);
  const Floats sigmoid = select(gate < Floats{}, e, one) / (one + e);
  return gate * sigmoid * up;
}

void silu_mul(float* gate, const float* up, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(gate + i, silu_times(load(gate + i), load(up + i)));
  }
  if (i == count) return;
  float g[kLanes] = {}, u[kLanes] = {};
  const auto bytes = static_cast<size_t>(count - i) * sizeof(float);
  memcpy(g, gate + i, bytes);
  memcpy(u, up + i, bytes);
  store(g, silu_times(load(g), load(u)));
  memcpy(gate + i, g, bytes);
}

void unpack_bf16(const void* from, int64_t count, float* out) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    memcpy(&bits, bytes + 2 * i, sizeof(bits));
    out[i] = cast<float>(static_cast<uint32_t>(bits) << 16);
  }
}

// Bits in place as for weights (linear_kernels.h): 2^-120 too small. Codes sign-extended.
WINNOW_INLINE Floats e4m3_values(Ints codes, Floats scale) {
  const Ints bits = (codes << 20) & splat_int(static_cast<int32_t>(0x87f00000u));
  return cast<Floats>(bits) * splat(0x1p120f) * scale;
}

// The two NaN codes kept.
void unpack_e4m3_with_nan(const uint8_t* from, int64_t count, float scale, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Ints code = splat_int(static_cast<int8_t>(from[i]));
    out[i] = (from[i] & 0x7f) == 0x7f ? __builtin_nanf("") : e4m3_values(code, splat(scale))[0];
  }
}

WINNOW_INLINE bool has_nan_code(const uint8_t* from, int64_t count) {
  uint64_t found = 0;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t codes;
    memcpy(&codes, from + i, sizeof(codes));
    // Magnitude 0x7f plus one carries into the sign's place, and no further.
    found |= (codes & 0x7f7f7f7f7f7f7f7fu) + 0x0101010101010101u;
  }
  bool in_tail = false;
  for (; i < count; ++i) in_tail |= (from[i] & 0x7f) == 0x7f;
  return (found & 0x8080808080808080u) != 0 || in_tail;
}

void unpack_e4m3(const uint8_t* from, int64_t count, float scale, float* out) {
  if (has_nan_code(from, count)) return unpack_e4m3_with_nan(from, count, scale, out);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, e4m3_values(load_signed_bytes(from + i), splat(scale)));
  }
  if (i == count) return;
  Ints codes = {};
  // Sign-extended, as load_signed_bytes does.
  for (int64_t l = 0; i + l < count; ++l) codes[l] = (from[i + l] ^ 0x80) - 0x80;
  const Floats values = e4m3_values(codes, splat(scale));
  for (int64_t l = 0; i + l < count; ++l) out[i + l] = values[l];
}

using Quad = float __attribute__((vector_size(16)));

// Four rows of four columns become four columns of four.
WINNOW_INLINE void transpose_4x4(const float* from, int64_t stride, float* to, int64_t to_stride) {
  Quad a, b, c, d;
  memcpy(&a, from, sizeof(a));
  memcpy(&b, from + stride, sizeof(b));
  memcpy(&c, from + 2 * stride, sizeof(c));
  memcpy(&d, from + 3 * stride, sizeof(d));
  const Quad ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
  const Quad ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Quad bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
  const Quad bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  const Quad rows[4] = {__builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5),
                        __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
                        __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5),
                        __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)};
  for (int i = 0; i < 4; ++i) memcpy(to + i * to_stride, &rows[i], sizeof(Quad));
}

void transpose_rows(const float* rows, int64_t stride, int64_t count, int64_t dim, float* out) {
  constexpr int64_t kWidth = 2 * kLanes;
  const int64_t padded = (count + kWidth - 1) / kWidth * kWidth;
  for (int64_t row = 0; row < padded; row += 4) {
    float* panel = out + row / kWidth * dim * kWidth + row % kWidth;
    int64_t c = 0;
    if (row + 4 <= count) {
      for (; c + 4 <= dim; c += 4) {
        transpose_4x4(rows + row * stride + c, stride, panel + c * kWidth, kWidth);
      }
    }
    for (; c < dim; ++c) {
      for (int64_t i = 0; i < 4; ++i) {
        panel[c * kWidth + i] = row + i < count ? rows[(row + i) * stride + c] : 0.0f;
      }
    }
  }
}

}  // namespace
}  // namespace winnow::backends::WINNOW_ISA
