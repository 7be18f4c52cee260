// The vector kernels one by one, on every instruction set this machine has.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

TEST(CpuKernels, BestIsOneOfThem) {
  EXPECT_EQ(backends::find_kernels(backends::best_kernels().isa), &backends::best_kernels());
  EXPECT_NE(backends::find_kernels("portable"), nullptr);
  EXPECT_EQ(backends::find_kernels("z80"), nullptr);
}

// All 256 codes, NaN ones included, at every place of a vector and in tails.
TEST(CpuKernels, UnpackE4m3IsExact) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    for (int64_t shift = 0; shift < 37; ++shift) {
      std::vector<uint8_t> codes;
      for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint8_t>(i + shift));
      const auto count = static_cast<int64_t>(256 - shift);
      std::vector<float> out(256, 77.0f);
      kernels->unpack_e4m3(codes.data(), count, 0.75f, out.data());
      for (int64_t i = 0; i < 256; ++i) {
        const float expected =
            i < count ? layout::e4m3_to_f32(codes[static_cast<size_t>(i)]) * 0.75f : 77.0f;
        const float got = out[static_cast<size_t>(i)];
        ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i;
      }
    }
  }
}

TEST(CpuKernels, UnpackBf16IsExact) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    std::vector<float> out(bits.size());
    kernels->unpack_bf16(bits.data(), static_cast<int64_t>(bits.size()), out.data());
    for (size_t i = 0; i < bits.size(); ++i) {
      const auto expected = static_cast<uint32_t>(bits[i]) << 16;
      uint32_t got;
      std::memcpy(&got, &out[i], 4);
      ASSERT_EQ(got, expected);
    }
  }
}

// Rounded activations are exactly the codes of layout::f32_to_e4m3: seen through an identity
// weight.
TEST(CpuKernels, ActivationsRoundLikeTheFormat) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    const auto backend = prepared_cpu(1, *kernels);
    constexpr int64_t kWidth = 128;
    std::vector<uint8_t> identity(kWidth * kWidth, 0);
    for (int64_t i = 0; i < kWidth; ++i) {
      identity[static_cast<size_t>(i * kWidth + i)] = layout::f32_to_e4m3(1.0f);
    }
    const float one = 1.0f;
    const ops::LinearWeight weight{identity.data(), DType::kE4m3, &one, kWidth, kWidth};
    CaseRandom random(5);
    for (int turn = 0; turn < 400; ++turn) {
      std::vector<float> x(kWidth), y(kWidth);
      for (float& v : x) {
        v = random.normal() * std::ldexp(1.0f, static_cast<int>(random.below(12)) - 10);
      }
      // Amax 448: scale 1, so values meet the format's own grid, ties and subnormals included.
      x[0] = 448.0f;
      x[1] = 0x1p-10f * static_cast<float>(turn % 40);
      x[2] = -(16.0f + 0.5f * static_cast<float>(turn % 64));
      backend->linear(
          {.num_rows = 1, .x = x.data(), .weight = weight, .fp8_activations = true, .y = y.data()});
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i], layout::e4m3_to_f32(layout::f32_to_e4m3(x[i]))) << x[i];
      }
    }
  }
}

TEST(CpuKernels, SiluMul) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    std::vector<float> gate, up;
    for (int i = -4000; i <= 4003; ++i) {
      gate.push_back(static_cast<float>(i) / 40.0f);
      up.push_back(1.5f);
    }
    gate.push_back(-1000.0f);
    up.push_back(1.0f);
    std::vector<float> out = gate;
    kernels->silu_mul(out.data(), up.data(), static_cast<int64_t>(out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      const double g = gate[i];
      const double exact = g / (1 + std::exp(-g)) * up[i];
      ASSERT_NEAR(out[i], exact, 4e-7 * std::fabs(exact) + 1e-35) << g;
    }
    float nan = NAN, one = 1.0f;
    kernels->silu_mul(&nan, &one, 1);
    EXPECT_TRUE(std::isnan(nan));
  }
}

}  // namespace
}  // namespace winnow::testing
