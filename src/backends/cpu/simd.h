// Vectors of the instruction set that the including file is compiled for. Only kernels_<isa>.cpp
// include this, inside a namespace of their own: the same inline function compiled with different
// flags must never be merged by the linker, so nothing here or below uses inline functions of
// other headers.
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace winnow::backends::WINNOW_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kLanes = 16;
#elif defined(__AVX2__)
constexpr int64_t kLanes = 8;
#else
constexpr int64_t kLanes = 4;
#endif

using Floats = float __attribute__((vector_size(4 * kLanes)));
using Ints = int32_t __attribute__((vector_size(4 * kLanes)));
using Words = int16_t __attribute__((vector_size(4 * kLanes)));

#define WINNOW_INLINE inline __attribute__((always_inline))

template <typename To, typename From>
WINNOW_INLINE To cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

WINNOW_INLINE Floats load(const float* from) {
  Floats v;
  memcpy(&v, from, sizeof(v));
  return v;
}
WINNOW_INLINE Ints load_ints(const void* from) {
  Ints v;
  memcpy(&v, from, sizeof(v));
  return v;
}
WINNOW_INLINE Words load_words(const void* from) {
  Words v;
  memcpy(&v, from, sizeof(v));
  return v;
}
// The low or high byte of each word, sign-extended, times 16; the lowest four bits are anything. A
// multiplication where there is one: it runs beside the shifts, which have only two ports.
WINNOW_INLINE Words low_bytes_times_16(Words v) {
#if defined(__AVX512BW__)
  return (Words)_mm512_maddubs_epi16(_mm512_set1_epi16(16), (__m512i)v);
#elif defined(__AVX2__)
  return (Words)_mm256_maddubs_epi16(_mm256_set1_epi16(16), (__m256i)v);
#else
  return (v << 8) >> 4;
#endif
}
WINNOW_INLINE Words high_bytes_times_16(Words v) {
#if defined(__AVX512BW__)
  return (Words)_mm512_maddubs_epi16(_mm512_set1_epi16(16 << 8), (__m512i)v);
#elif defined(__AVX2__)
  return (Words)_mm256_maddubs_epi16(_mm256_set1_epi16(16 << 8), (__m256i)v);
#else
  return v >> 4;
#endif
}

// kLanes bytes, sign-extended.
WINNOW_INLINE Ints load_signed_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return (Ints)_mm512_maskz_cvtepi8_epi32(0xffff, bytes);
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
  int8_t bytes[kLanes];
  memcpy(bytes, from, sizeof(bytes));
  return Ints{bytes[0], bytes[1], bytes[2], bytes[3]};
#endif
}
WINNOW_INLINE void store(float* to, Floats v) { memcpy(to, &v, sizeof(v)); }
WINNOW_INLINE Floats splat(float value) { return value - Floats{}; }
WINNOW_INLINE Ints splat_int(int32_t value) { return value - Ints{}; }

// a * b + c; fused where the instruction set has it (contraction is off in the whole project).
WINNOW_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// Lanes of yes where mask is all ones, of no where it is zero.
WINNOW_INLINE Floats select(Ints mask, Floats yes, Floats no) {
  return cast<Floats>((mask & cast<Ints>(yes)) | (~mask & cast<Ints>(no)));
}

// b where a < b; a where either is NaN.
WINNOW_INLINE Floats max(Floats a, Floats b) { return select(a < b, b, a); }

WINNOW_INLINE Floats abs(Floats a) { return cast<Floats>(cast<Ints>(a) & splat_int(0x7fffffff)); }

// Halving tree: lane i takes lane i + width / 2.
WINNOW_INLINE float sum_lanes(Floats v) {
  float lanes[kLanes];
  memcpy(lanes, &v, sizeof(v));
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

WINNOW_INLINE float max_lanes(Floats v) {
  float lanes[kLanes];
  memcpy(lanes, &v, sizeof(v));
  float best = lanes[0];
  for (int64_t i = 1; i < kLanes; ++i) best = best < lanes[i] ? lanes[i] : best;
  return best;
}

WINNOW_INLINE float bits_to_float(uint32_t bits) { return cast<float>(bits); }

// e^x for x <= 0 within 2 ulp; 0 below -87, NaN for NaN.
WINNOW_INLINE Floats exp_nonpositive(Floats x) {
  const Ints too_small = x < splat(-87.0f);
  const Floats safe = select(too_small, splat(-87.0f), x);
  const Floats magic = splat(0x1.8p23f);
  const Floats shifted = fma(safe, splat(1.44269504f), magic);  // low bits: round(x / ln 2)
  const Floats n = shifted - magic;
  Floats r = fma(n, splat(-0x1.62e4p-1f), safe);
  r = fma(n, splat(-1.42860677e-6f), r);
  Floats p = splat(1.0f / 720);
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  const Ints exponent = (cast<Ints>(shifted) - splat_int(0x4b400000) + splat_int(127)) << 23;
  return select(too_small, Floats{}, p * cast<Floats>(exponent));
}

// e4m3(value) as a float: nearest, ties to even, saturating at 448; NaN stays NaN.
WINNOW_INLINE Floats round_to_e4m3(Floats value) {
  const Ints sign = cast<Ints>(value) & splat_int(INT32_MIN);
  const Floats magnitude = abs(value);
  const Ints bits = cast<Ints>(magnitude);
  const Ints rounded = (bits + splat_int(0x7ffff) + ((bits >> 20) & splat_int(1))) &
                       splat_int(static_cast<int32_t>(0xfff00000u));
  // Below 2^-6 codes are 2^-9 apart: adding 1.5 * 2^14 leaves exactly those steps.
  const Floats small = (magnitude + splat(0x1.8p14f)) - splat(0x1.8p14f);
  Floats result = select(magnitude < splat(0x1p-6f), small, cast<Floats>(rounded));
  result = select(magnitude >= splat(448.0f), splat(448.0f), result);
  result = select(magnitude == magnitude, result, magnitude);
  return cast<Floats>(cast<Ints>(result) | sign);
}

}  // namespace
}  // namespace winnow::backends::WINNOW_ISA
