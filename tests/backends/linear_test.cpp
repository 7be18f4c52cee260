// Linear products against a double reference, for every weight dtype and odd shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/backends.h"
#include "layout/float_formats.h"
#include "layout/kv_layout.h"

namespace winnow {
namespace {

constexpr int kHidden = 320;

ops::ModelShape small_shape() {
  ops::ModelShape shape;
  shape.hidden_size = kHidden;
  shape.vocab_size = 16;
  shape.num_attention_heads = 4;
  shape.kv_lora_rank = 32;
  shape.qk_rope_head_dim = 8;
  shape.intermediate_size = 256;
  shape.max_rows = 16;
  shape.max_context = 64;
  return shape;
}

struct StoredWeight {
  std::vector<uint8_t> bytes;
  std::vector<float> scale;
  std::vector<double> exact;  // what the stored bytes mean
  ops::LinearWeight view;
};

StoredWeight make_weight(DType dtype, int64_t out, int64_t in, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  StoredWeight w;
  w.bytes.resize(static_cast<size_t>(out * in * bytes_of(dtype)));
  const int64_t groups = layout::ceil_div(in, 128);
  for (int64_t i = 0; i < layout::ceil_div(out, 128) * groups; ++i) {
    w.scale.push_back(0.01f + 0.001f * static_cast<float>(i));
  }
  for (int64_t i = 0; i < out * in; ++i) {
    const float value = normal(random);
    const auto at = static_cast<size_t>(i);
    switch (dtype) {
      case DType::kF32:
        reinterpret_cast<float*>(w.bytes.data())[at] = value;
        w.exact.push_back(value);
        break;
      case DType::kBf16: {
        const uint16_t bits = layout::f32_to_bf16(value);
        reinterpret_cast<uint16_t*>(w.bytes.data())[at] = bits;
        w.exact.push_back(layout::bf16_to_f32(bits));
        break;
      }
      default: {
        const uint8_t code = layout::f32_to_e4m3(value * 40);
        w.bytes[at] = code;
        w.exact.push_back(static_cast<double>(layout::e4m3_to_f32(code)) *
                          w.scale[static_cast<size_t>(i / in / 128 * groups + i % in / 128)]);
      }
    }
  }
  w.view = {w.bytes.data(), dtype, dtype == DType::kE4m3 ? w.scale.data() : nullptr, out, in};
  return w;
}

TEST(CpuLinear, MatchesDoubleReference) {
  const auto backend = backends::make_cpu(2);
  backend->prepare(small_shape());
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kE4m3}) {
    for (const int64_t in : {7, 128, 200, 320}) {
      for (const int64_t out : {1, 5, 130}) {
        const int64_t rows = 3;
        const StoredWeight w = make_weight(dtype, out, in, 7);
        std::vector<float> x(static_cast<size_t>(rows * in));
        std::mt19937 random(11);
        std::normal_distribution<float> normal;
        for (float& v : x) v = normal(random);
        std::vector<float> y(static_cast<size_t>(rows * out), NAN);
        backend->linear({.num_rows = static_cast<int32_t>(rows),
                         .x = x.data(),
                         .weight = w.view,
                         .y = y.data()});
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t n = 0; n < out; ++n) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < in; ++k) {
              const double term =
                  x[static_cast<size_t>(r * in + k)] * w.exact[static_cast<size_t>(n * in + k)];
              sum += term;
              magnitude += std::fabs(term);
            }
            EXPECT_NEAR(y[static_cast<size_t>(r * out + n)], sum, 1e-6 * magnitude + 1e-9)
                << to_string(dtype) << " in " << in << " out " << out;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow
