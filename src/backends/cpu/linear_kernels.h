// Linear products: lanes run along the input channels, one vector accumulator an output, summed
// across lanes once at the end. Few rows read the weight where it lies; many rows unpack a tile of
// it to scratch first. Both do the same additions in the same order, so the number of rows leaves
// no trace in the bits. Included by kernels_<isa>.cpp only.
#include "backends/cpu/kernels.h"

namespace winnow::backends::WINNOW_ISA {
namespace {

constexpr int64_t kScaleGroup = 128;

// How a dtype unpacks: kVectors vectors from kVectors * kLanes consecutive weights, vector v lane i
// holding weight kVectors * i + v. Packed activations are permuted the same way.
struct F32Weights {
  using Element = float;
  static constexpr int kVectors = 1;
  static constexpr bool kBlockScaled = false;
  static WINNOW_INLINE void unpack(const Element* from, Floats* out) { out[0] = load(from); }
};

struct Bf16Weights {
  using Element = uint16_t;
  static constexpr int kVectors = 2;
  static constexpr bool kBlockScaled = false;
  static WINNOW_INLINE void unpack(const Element* from, Floats* out) {
    const Ints pairs = load_ints(from);
    out[0] = cast<Floats>(pairs << 16);
    out[1] = cast<Floats>(pairs & splat_int(static_cast<int32_t>(0xffff0000u)));
  }
};

// Exponent and mantissa moved into place read 2^-112 too small, subnormals included.
struct F16Weights {
  using Element = uint16_t;
  static constexpr int kVectors = 2;
  static constexpr bool kBlockScaled = false;
  static WINNOW_INLINE Floats in_place(Ints top_half) {
    const Ints mask = splat_int(static_cast<int32_t>(0x8fffe000u));
    return cast<Floats>((top_half >> 3) & mask) * splat(0x1p112f);
  }
  static WINNOW_INLINE void unpack(const Element* from, Floats* out) {
    const Ints pairs = load_ints(from);
    out[0] = in_place(pairs << 16);
    out[1] = in_place(pairs & splat_int(static_cast<int32_t>(0xffff0000u)));
  }
};

// Read as e4m3 * 2^-120: sign, exponent and mantissa moved into place with nothing rebiased, so
// that subnormal codes come out right too. Activations are packed times 2^80, which keeps products
// clear of the subnormal range; the finished sum takes back the 2^40 that are left. NaN codes,
// which no checkpoint has, read as 480.
struct E4m3Weights {
  using Element = uint8_t;
  static constexpr int kVectors = 4;
  static constexpr bool kBlockScaled = true;
  static WINNOW_INLINE void unpack(const Element* from, Floats* out) {
    const Ints quads = load_ints(from);
    const Words mask = cast<Words>(splat_int(static_cast<int32_t>(0x87f087f0u)));
    const Words even = ((cast<Words>(quads) << 8) >> 4) & mask;
    const Words odd = (cast<Words>(quads) >> 4) & mask;
    const Ints high = splat_int(static_cast<int32_t>(0xffff0000u));
    out[0] = cast<Floats>(cast<Ints>(even) << 16);
    out[1] = cast<Floats>(cast<Ints>(odd) << 16);
    out[2] = cast<Floats>(cast<Ints>(even) & high);
    out[3] = cast<Floats>(cast<Ints>(odd) & high);
  }
};

constexpr float kE4m3Pack = 0x1p80f;
constexpr float kE4m3Unpack = 0x1p40f;

template <typename W>
constexpr int64_t kChunk = W::kVectors* kLanes;

template <typename W>
__attribute__((noinline)) void unpack_tail(const typename W::Element* from,
                                           int64_t count,
                                           Floats* out) {
  typename W::Element padded[kChunk<W>] = {};
  for (int64_t i = 0; i < count; ++i) padded[i] = from[i];
  W::unpack(padded, out);
}

// Columns [begin, end) of N weight rows against R packed rows, added to acc.
template <typename W, int R, int N>
WINNOW_INLINE void add_columns(const float* x,
                               int64_t x_stride,
                               const typename W::Element* weight,
                               int64_t in,
                               int64_t begin,
                               int64_t end,
                               Floats (&acc)[R][N]) {
  int64_t k = begin;
  for (; k + kChunk<W> <= end; k += kChunk<W>) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      Floats w[W::kVectors];
      W::unpack(weight + n * in + k, w);
#pragma GCC unroll 8
      for (int v = 0; v < W::kVectors; ++v) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          acc[r][n] = fma(load(x + r * x_stride + (k - begin) + v * kLanes), w[v], acc[r][n]);
        }
      }
    }
  }
  if (k == end) [[likely]]
    return;
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    Floats w[W::kVectors];
    unpack_tail<W>(weight + n * in + k, end - k, w);
#pragma GCC unroll 8
    for (int v = 0; v < W::kVectors; ++v) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        acc[r][n] = fma(load(x + r * x_stride + (k - begin) + v * kLanes), w[v], acc[r][n]);
      }
    }
  }
}

WINNOW_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
WINNOW_INLINE int64_t groups_of(int64_t in) { return (in + kScaleGroup - 1) / kScaleGroup; }

// Where the scales of each output's row begin.
WINNOW_INLINE void find_scales(const LinearTile& t, const float** w_scales) {
  for (int64_t n = 0; n < t.num_outputs; ++n) {
    w_scales[n] = t.w_scales + (t.first_output + n) / kScaleGroup * groups_of(t.in_features);
  }
}

template <typename W>
WINNOW_INLINE float finished(Floats sums) {
  return W::kBlockScaled ? sum_lanes(sums) * kE4m3Unpack : sum_lanes(sums);
}

// All columns of N outputs for R rows, straight from the weight.
template <typename W, int R, int N>
void few_rows_tile(const LinearTile& t, int64_t first, const float* const* w_scales) {
  const int64_t in = t.in_features;
  const auto* weight =
      static_cast<const typename W::Element*>(t.weight) + (t.first_output + first) * in;
  Floats total[R][N] = {};
  for (int64_t block = 0; block < in; block += kColumnBlock) {
    const int64_t end = smaller(in, block + kColumnBlock);
    const float* x = t.packed + block * t.num_rows;
    if constexpr (W::kBlockScaled) {
      for (int64_t begin = block; begin < end; begin += kScaleGroup) {
        Floats acc[R][N] = {};
        add_columns<W, R, N>(x + (begin - block), kColumnBlock, weight, in, begin,
                             smaller(end, begin + kScaleGroup), acc);
        const int64_t group = begin / kScaleGroup;
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) {
          const Floats scale = splat(w_scales[n][group]);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) total[r][n] = fma(acc[r][n], scale, total[r][n]);
        }
      }
    } else {
      add_columns<W, R, N>(x, kColumnBlock, weight, in, block, end, total);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      t.y[r * t.y_stride + t.first_output + first + n] = finished<W>(total[r][n]);
    }
  }
}

template <typename W, int R, int N>
void few_rows(const LinearTile& t) {
  const float* w_scales[kOutputTile];
  if constexpr (W::kBlockScaled) find_scales(t, w_scales);
  int64_t n = 0;
  for (; n + N <= t.num_outputs; n += N) few_rows_tile<W, R, N>(t, n, w_scales + n);
  for (; n < t.num_outputs; ++n) few_rows_tile<W, R, 1>(t, n, w_scales + n);
}

// Unpacked columns of one block of the tile's outputs: [num_outputs][kColumnBlock].
template <typename W>
void unpack_block(const LinearTile& t, int64_t block, float* out) {
  const int64_t in = t.in_features, end = smaller(in, block + kColumnBlock);
  for (int64_t n = 0; n < t.num_outputs; ++n) {
    const auto* from =
        static_cast<const typename W::Element*>(t.weight) + (t.first_output + n) * in;
    float* to = out + n * kColumnBlock;
    int64_t k = block;
    Floats w[W::kVectors];
    for (; k < end; k += kChunk<W>) {
      if (k + kChunk<W> <= end) {
        W::unpack(from + k, w);
      } else {
        unpack_tail<W>(from + k, end - k, w);
      }
      for (int v = 0; v < W::kVectors; ++v) store(to + (k - block) + v * kLanes, w[v]);
    }
  }
}

// One block of columns of R rows against N unpacked outputs, added to the partial sums.
template <typename W, int R, int N>
void add_block(const LinearTile& t,
               const float* x,
               const float* w,
               int64_t block,
               const float* const* w_scales,
               float* sums) {
  const int64_t padded =
      (smaller(t.in_features - block, kColumnBlock) + kChunk<W> - 1) / kChunk<W> * kChunk<W>;
  constexpr int64_t kStep = W::kBlockScaled ? kScaleGroup : kColumnBlock;
  for (int64_t begin = 0; begin < padded; begin += kStep) {
    const int64_t end = smaller(padded, begin + kStep);
    Floats acc[R][N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        acc[r][n] = W::kBlockScaled ? Floats{} : load(sums + (r * kOutputTile + n) * kLanes);
      }
    }
    for (int64_t k = begin; k < end; k += kLanes) {
      Floats wv[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) wv[n] = load(w + n * kColumnBlock + k);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Floats xv = load(x + r * kColumnBlock + k);
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) acc[r][n] = fma(xv, wv[n], acc[r][n]);
      }
    }
    const int64_t group = (block + begin) / kScaleGroup;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      const Floats scale = W::kBlockScaled ? splat(w_scales[n][group]) : Floats{};
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        float* sum = sums + (r * kOutputTile + n) * kLanes;
        store(sum, W::kBlockScaled ? fma(acc[r][n], scale, load(sum)) : acc[r][n]);
      }
    }
  }
}

template <typename W, int R>
void add_block_outputs(const LinearTile& t,
                       const float* x,
                       const float* w,
                       int64_t block,
                       int64_t first,
                       int64_t last,
                       const float* const* w_scales,
                       float* sums) {
  int64_t n = first;
  for (; n + 3 <= last; n += 3) {
    add_block<W, R, 3>(t, x, w + n * kColumnBlock, block, w_scales + n, sums + n * kLanes);
  }
  for (; n < last; ++n) {
    add_block<W, R, 1>(t, x, w + n * kColumnBlock, block, w_scales + n, sums + n * kLanes);
  }
}

// Asks for the weights of one output in the block behind this one: their rows lie pages apart,
// where no hardware prefetcher follows.
template <typename W>
WINNOW_INLINE void prefetch_next(const LinearTile& t, int64_t block, int64_t output) {
  const int64_t begin = block + kColumnBlock, end = smaller(t.in_features, begin + kColumnBlock);
  if (output >= t.num_outputs) return;
  const auto* row =
      static_cast<const typename W::Element*>(t.weight) + (t.first_output + output) * t.in_features;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(typename W::Element));
  for (int64_t k = begin; k < end; k += kLine) __builtin_prefetch(row + k, 0, 2);
}

// Rows of one row tile against one block of columns. Outputs go in groups whose unpacked weights
// stay in the first-level cache while all rows pass by.
template <typename W>
void add_row_tile(const LinearTile& t,
                  const float* x,
                  const float* unpacked,
                  int64_t block,
                  int64_t rows,
                  const float* const* w_scales,
                  float* sums) {
  constexpr int64_t kCachedOutputs = 24;
  for (int64_t n = 0; n < t.num_outputs; n += kCachedOutputs) {
    const int64_t last = smaller(t.num_outputs, n + kCachedOutputs);
    int64_t r = 0, prefetched = n;
    for (; r + 4 <= rows; r += 4) {
      for (int i = 0; i < 2 && prefetched < last; ++i) prefetch_next<W>(t, block, prefetched++);
      add_block_outputs<W, 4>(t, x + r * kColumnBlock, unpacked, block, n, last, w_scales,
                              sums + r * kOutputTile * kLanes);
    }
    for (; r < rows; ++r) {
      add_block_outputs<W, 1>(t, x + r * kColumnBlock, unpacked, block, n, last, w_scales,
                              sums + r * kOutputTile * kLanes);
    }
  }
}

template <typename W>
void many_rows(const LinearTile& t) {
  float* unpacked = t.scratch;
  float* sums = t.scratch + kOutputTile * kColumnBlock;  // [kRowTile][kOutputTile][kLanes]
  const float* w_scales[kOutputTile] = {};
  if constexpr (W::kBlockScaled) find_scales(t, w_scales);
  for (int64_t first = 0; first < t.num_rows; first += kRowTile) {
    const int64_t rows = smaller(kRowTile, t.num_rows - first);
    memset(sums, 0, static_cast<size_t>(rows * kOutputTile * kLanes) * sizeof(float));
    for (int64_t block = 0; block < t.in_features; block += kColumnBlock) {
      unpack_block<W>(t, block, unpacked);
      add_row_tile<W>(t, t.packed + block * t.num_rows + first * kColumnBlock, unpacked, block,
                      rows, w_scales, sums);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < t.num_outputs; ++n) {
        t.y[(first + r) * t.y_stride + t.first_output + n] =
            finished<W>(load(sums + (r * kOutputTile + n) * kLanes));
      }
    }
  }
}

template <typename W>
void linear_tile(const LinearTile& t) {
  switch (t.num_rows) {
    case 1:
      return few_rows<W, 1, 4>(t);
    case 2:
      return few_rows<W, 2, 4>(t);
    case 3:
      return few_rows<W, 3, 3>(t);
    case 4:
      return few_rows<W, 4, 3>(t);
    default:
      return many_rows<W>(t);
  }
}

WINNOW_INLINE int vectors_of(DType dtype) {
  return dtype == DType::kE4m3 ? 4 : dtype == DType::kF32 ? 1 : 2;
}

// Values of one scale group rounded to e4m3 times the group's scale, in place.
WINNOW_INLINE void round_group(float* values) {
  Floats largest = splat(1e-10f);  // the floor of LinearArgs
  for (int64_t i = 0; i < kScaleGroup; i += kLanes) largest = max(largest, abs(load(values + i)));
  const float scale = max_lanes(largest) / 448.0f;
  for (int64_t i = 0; i < kScaleGroup; i += kLanes) {
    store(values + i, round_to_e4m3(load(values + i) / splat(scale)) * splat(scale));
  }
}

void pack_rows(const PackRows& args, int64_t row) {
  const int64_t source = args.row_idx != nullptr ? args.row_idx[row] / args.row_divisor : row;
  const float* x = args.x + source * args.x_stride;
  const int vectors = vectors_of(args.weight_dtype);
  const int64_t chunk = vectors * kLanes, in = args.in_features;
  const float factor = args.weight_dtype == DType::kE4m3 ? kE4m3Pack : 1.0f;
  for (int64_t block = 0; block < in; block += kColumnBlock) {
    float* out = args.packed + block * args.num_rows + row * kColumnBlock;
    float values[kColumnBlock] = {};
    const int64_t count = smaller(kColumnBlock, in - block);
    memcpy(values, x + block, static_cast<size_t>(count) * sizeof(float));
    if (args.to_e4m3) {
      for (int64_t g = 0; g < count; g += kScaleGroup) round_group(values + g);
    }
    const int64_t padded = (count + kColumnPad - 1) / kColumnPad * kColumnPad;
    for (int64_t k = 0; k < padded; k += chunk) {
      for (int v = 0; v < vectors; ++v) {
        for (int64_t i = 0; i < kLanes; ++i) {
          out[k + v * kLanes + i] = values[k + vectors * i + v] * factor;
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow::backends::WINNOW_ISA
