// Embedding, norms and gathers.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

TEST(CpuTokenOps, EmbedReadsEveryTableDtype) {
  const auto backend = prepared_cpu(2);
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const StoredWeight table = make_weight(dtype, 50, 33, 1);
    const std::vector<int32_t> ids = {0, 49, 7, 7};
    std::vector<float> out(4 * 33, NAN);
    backend->embed({ids.data(), 4, table.view(), out.data()});
    for (size_t t = 0; t < 4; ++t) {
      for (int64_t i = 0; i < 33; ++i) {
        ASSERT_EQ(out[t * 33 + static_cast<size_t>(i)], table.value(ids[t], i));
      }
    }
  }
}

TEST(CpuTokenOps, RmsNormAddsThenNorms) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    const auto backend = prepared_cpu(2, *kernels);
    for (const int64_t width : {1, 7, 64, 100, 512, 6144}) {
      SCOPED_TRACE(width);
      const int64_t rows = 40, stride = width + 3;
      const std::vector<float> given = CaseRandom(2).bf16_normals(rows * stride);
      const std::vector<float> delta = CaseRandom(3).bf16_normals(rows * width);
      const std::vector<float> weight = CaseRandom(4).bf16_normals(width);
      for (const bool add : {false, true}) {
        std::vector<float> residual = given, out(static_cast<size_t>(rows * width), NAN);
        backend->rms_norm({static_cast<int32_t>(rows), width, residual.data(), stride,
                           add ? delta.data() : nullptr, weight.data(), 1e-5f, out.data()});
        for (int64_t t = 0; t < rows; ++t) {
          double squares = 0;
          for (int64_t i = 0; i < width; ++i) {
            const auto at = static_cast<size_t>(t * stride + i);
            const float sum = given[at] + (add ? delta[static_cast<size_t>(t * width + i)] : 0.0f);
            ASSERT_EQ(residual[at], sum);
            squares += static_cast<double>(sum) * sum;
          }
          const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
          for (int64_t i = 0; i < width; ++i) {
            const double exact = residual[static_cast<size_t>(t * stride + i)] * factor *
                                 weight[static_cast<size_t>(i)];
            ASSERT_NEAR(out[static_cast<size_t>(t * width + i)], exact,
                        1e-6 * std::fabs(exact) + 1e-9);
          }
          for (int64_t i = width; i < stride; ++i) {
            ASSERT_EQ(residual[static_cast<size_t>(t * stride + i)],
                      given[static_cast<size_t>(t * stride + i)]);
          }
        }
        // A row alone has the same bits.
        std::vector<float> one(given.begin() + stride, given.begin() + stride + width);
        std::vector<float> alone(static_cast<size_t>(width), NAN);
        backend->rms_norm({1, width, one.data(), width, add ? delta.data() + width : nullptr,
                           weight.data(), 1e-5f, alone.data()});
        for (int64_t i = 0; i < width; ++i) {
          ASSERT_EQ(alone[static_cast<size_t>(i)], out[static_cast<size_t>(width + i)]);
        }
      }
    }
  }
}

TEST(CpuTokenOps, GatherRows) {
  const auto backend = prepared_cpu(1);
  const std::vector<float> x = {0, 1, 10, 11, 20, 21};
  const std::vector<int32_t> rows = {2, 0, 2};
  std::vector<float> out(6, NAN);
  backend->gather_rows({x.data(), rows.data(), 3, 2, out.data()});
  EXPECT_EQ(out, (std::vector<float>{20, 21, 0, 1, 20, 21}));
}

}  // namespace
}  // namespace winnow::testing
