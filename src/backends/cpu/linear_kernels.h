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
    const Words pairs = load_words(from);
    const Ints even = cast<Ints>(low_bytes_times_16(pairs));
    const Ints odd = cast<Ints>(high_bytes_times_16(pairs));
    const Ints mask = splat_int(static_cast<int32_t>(0x87f00000u));
    out[0] = cast<Floats>((even << 16) & mask);
    out[1] = cast<Floats>((odd << 16) & mask);
    out[2] = cast<Floats>(even & mask);
    out[3] = cast<Floats>(odd & mask);
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

// Columns [begin, end) of N weight rows against R packed rows, added to acc. Asks for the weights
// ahead elements on meanwhile.
template <typename W, int R, int N>
WINNOW_INLINE void add_columns(const float* x,
                               int64_t x_stride,
                               const typename W::Element* weight,
                               int64_t in,
                               int64_t begin,
                               int64_t end,
                               int64_t ahead,
                               Floats (&acc)[R][N]) {
  int64_t k = begin;
  for (; k + kChunk<W> <= end; k += kChunk<W>) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      Floats w[W::kVectors];
      __builtin_prefetch(weight + n * in + k + ahead, 0, 2);
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

// Block scales go to the activations: rows times the scale of each 128 columns, for the one row of
// blocks that the tile's outputs lie in. Far fewer products than scaling weights or partial sums.
void scale_rows(
    const LinearTile& t, const float* rows, int64_t num_rows, int64_t block, float* out) {
  const float* scales = t.w_scales + t.first_output / kScaleGroup * groups_of(t.in_features);
  const int64_t columns = smaller(kColumnBlock, t.in_features - block);
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t begin = 0; begin < columns; begin += kScaleGroup) {
      const Floats scale = splat(scales[(block + begin) / kScaleGroup]);
      for (int64_t k = begin; k < begin + kScaleGroup; k += kLanes) {
        store(out + r * kColumnBlock + k, load(rows + r * kColumnBlock + k) * scale);
      }
    }
  }
}

template <typename W>
WINNOW_INLINE float finished(Floats sums) {
  return W::kBlockScaled ? sum_lanes(sums) * kE4m3Unpack : sum_lanes(sums);
}

// All columns of N outputs for R rows, straight from the weight; x as PackRows lays it out.
template <typename W, int R, int N>
void few_rows_tile(const LinearTile& t, const float* x, int64_t first, int64_t rows_ahead) {
  const int64_t in = t.in_features;
  const auto* weight =
      static_cast<const typename W::Element*>(t.weight) + (t.first_output + first) * in;
  Floats total[R][N] = {};
  for (int64_t block = 0; block < in; block += kColumnBlock) {
    add_columns<W, R, N>(x + block * R, kColumnBlock, weight, in, block,
                         smaller(in, block + kColumnBlock), rows_ahead * in, total);
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
  const float* x = t.packed;
  if constexpr (W::kBlockScaled) {
    for (int64_t block = 0; block < t.in_features; block += kColumnBlock) {
      scale_rows(t, t.packed + block * R, R, block, t.scratch + block * R);
    }
    x = t.scratch;
  }
  // Weights are asked for a few rows before they are needed: the hardware's prefetchers end at
  // each page, and several rows are read at a time.
  constexpr int64_t kAheadBytes = 16 << 10;
  const int64_t row_bytes = t.in_features * static_cast<int64_t>(sizeof(typename W::Element));
  const int64_t rows_ahead = N * (1 + kAheadBytes / (N * row_bytes));
  const int64_t known = t.num_outputs + t.outputs_behind;
  int64_t n = 0;
  for (; n + N <= t.num_outputs; n += N) {
    few_rows_tile<W, R, N>(t, x, n, n + rows_ahead + N <= known ? rows_ahead : 0);
  }
  for (; n < t.num_outputs; ++n) few_rows_tile<W, R, 1>(t, x, n, 0);
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
template <int R, int N>
void add_block(const float* x, const float* w, int64_t columns, float* sums) {
  Floats acc[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = load(sums + (r * kOutputTile + n) * kLanes);
  }
  for (int64_t k = 0; k < columns; k += kLanes) {
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
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) store(sums + (r * kOutputTile + n) * kLanes, acc[r][n]);
  }
}

template <int R>
void add_block_outputs(
    const float* x, const float* w, int64_t columns, int64_t first, int64_t last, float* sums) {
  int64_t n = first;
  for (; n + 3 <= last; n += 3) {
    add_block<R, 3>(x, w + n * kColumnBlock, columns, sums + n * kLanes);
  }
  for (; n < last; ++n) add_block<R, 1>(x, w + n * kColumnBlock, columns, sums + n * kLanes);
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
                  float* sums) {
  constexpr int64_t kCachedOutputs = 12;
  const int64_t columns =
      (smaller(t.in_features - block, kColumnBlock) + kChunk<W> - 1) / kChunk<W> * kChunk<W>;
  for (int64_t n = 0; n < t.num_outputs; n += kCachedOutputs) {
    const int64_t last = smaller(t.num_outputs, n + kCachedOutputs);
    int64_t r = 0, prefetched = n;
    for (; r + 4 <= rows; r += 4) {
      for (int i = 0; i < 2 && prefetched < last; ++i) prefetch_next<W>(t, block, prefetched++);
      add_block_outputs<4>(x + r * kColumnBlock, unpacked, columns, n, last,
                           sums + r * kOutputTile * kLanes);
    }
    for (; r < rows; ++r) {
      add_block_outputs<1>(x + r * kColumnBlock, unpacked, columns, n, last,
                           sums + r * kOutputTile * kLanes);
    }
  }
}

template <typename W>
void many_rows(const LinearTile& t) {
  float* unpacked = t.scratch;                            // [kOutputTile][kColumnBlock]
  float* scaled = unpacked + kOutputTile * kColumnBlock;  // [kRowTile][kColumnBlock]
  float* sums = scaled + kRowTile * kColumnBlock;         // [kRowTile][kOutputTile][kLanes]
  for (int64_t first = 0; first < t.num_rows; first += kRowTile) {
    const int64_t rows = smaller(kRowTile, t.num_rows - first);
    memset(sums, 0, static_cast<size_t>(rows * kOutputTile * kLanes) * sizeof(float));
    for (int64_t block = 0; block < t.in_features; block += kColumnBlock) {
      unpack_block<W>(t, block, unpacked);
      const float* x = t.packed + block * t.num_rows + first * kColumnBlock;
      if constexpr (W::kBlockScaled) {
        scale_rows(t, x, rows, block, scaled);
        x = scaled;
      }
      add_row_tile<W>(t, x, unpacked, block, rows, sums);
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
  // Scaled activations of few rows must fit the scratch; if not, the other way has the same bits.
  const int64_t padded = (t.in_features + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
  if (W::kBlockScaled && t.num_rows * padded > kLinearScratch) return many_rows<W>(t);
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
      static_assert(kFewRows == 4);
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
