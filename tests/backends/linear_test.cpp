// Linear products against a double reference, and the promise that rows leave no trace.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

// x as an fp8 linear reads it: rounded per row and 128 channels.
std::vector<double> rounded(const std::vector<float>& x, int64_t in, bool fp8) {
  std::vector<double> values(x.begin(), x.end());
  if (!fp8) return values;
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(in)) {
    for (int64_t g = 0; g < in; g += 128) {
      float amax = 1e-10f;
      const int64_t end = std::min(in, g + 128);
      for (int64_t i = g; i < end; ++i) {
        amax = std::max(amax, std::fabs(x[row + static_cast<size_t>(i)]));
      }
      const float scale = amax / 448.0f;
      for (int64_t i = g; i < end; ++i) {
        const auto at = row + static_cast<size_t>(i);
        values[at] =
            static_cast<double>(layout::e4m3_to_f32(layout::f32_to_e4m3(x[at] / scale))) * scale;
      }
    }
  }
  return values;
}

std::vector<float> run(ops::Backend& backend,
                       const std::vector<float>& x,
                       const StoredWeight& w,
                       int64_t first,
                       int64_t rows,
                       bool fp8) {
  std::vector<float> y(static_cast<size_t>(rows * w.out), NAN);
  backend.linear({.num_rows = static_cast<int32_t>(rows),
                  .x = x.data() + first * w.in,
                  .weight = w.view(),
                  .fp8_activations = fp8,
                  .y = y.data()});
  return y;
}

TEST(CpuLinear, MatchesDoubleReference) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    const auto backend = prepared_cpu(2, *kernels);
    for (const LinearCase& c : linear_cases()) {
      SCOPED_TRACE(std::string(kernels->isa) + " " + c.name);
      const StoredWeight w = make_weight(c.dtype, c.out, c.in, 3);
      const std::vector<float> x = CaseRandom(4).bf16_normals(c.rows * c.in);
      const std::vector<double> exact = rounded(x, c.in, c.fp8_activations);
      const std::vector<float> y = run(*backend, x, w, 0, c.rows, c.fp8_activations);
      for (int64_t r = 0; r < c.rows; ++r) {
        for (int64_t n = 0; n < c.out; ++n) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < c.in; ++k) {
            const double term = exact[static_cast<size_t>(r * c.in + k)] * w.value(n, k);
            sum += term;
            magnitude += std::fabs(term);
          }
          ASSERT_NEAR(y[static_cast<size_t>(r * c.out + n)], sum, 3e-6 * magnitude + 1e-30)
              << "row " << r << " output " << n;
        }
      }
    }
  }
}

// One kernel family for all row counts: the bits of a row are its own.
TEST(CpuLinear, RowsLeaveNoTrace) {
  for (const backends::KernelTable* kernels : all_kernels()) {
    const auto two = prepared_cpu(2, *kernels);
    const auto one = prepared_cpu(1, *kernels);
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kE4m3}) {
      SCOPED_TRACE(std::string(kernels->isa) + " " + to_string(dtype));
      const int64_t rows = 70, in = 457, out = 1700;
      const StoredWeight w = make_weight(dtype, out, in, 5);
      const std::vector<float> x = CaseRandom(6).bf16_normals(rows * in);
      const std::vector<float> all = run(*two, x, w, 0, rows, true);
      ASSERT_EQ(all, run(*one, x, w, 0, rows, true));
      for (const int64_t step : {1, 2, 3, 4, 5, 33}) {
        std::vector<float> parts;
        for (int64_t first = 0; first < rows; first += step) {
          const std::vector<float> part =
              run(*two, x, w, first, std::min(step, rows - first), true);
          parts.insert(parts.end(), part.begin(), part.end());
        }
        ASSERT_EQ(all, parts) << "in steps of " << step;
      }
    }
  }
}

// More rows than one pass takes, and an input wider than the prepared model's.
TEST(CpuLinear, LongAndWide) {
  const auto backend = prepared_cpu();
  for (const auto& [rows, in] : {std::pair<int64_t, int64_t>{1100, 64}, {40, 40000}}) {
    const StoredWeight w = make_weight(DType::kBf16, 3, in, 7);
    const std::vector<float> x = CaseRandom(8).bf16_normals(rows * in);
    const std::vector<float> all = run(*backend, x, w, 0, rows, false);
    for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
      const std::vector<float> alone = run(*backend, x, w, row, 1, false);
      for (size_t n = 0; n < alone.size(); ++n) {
        ASSERT_EQ(all[static_cast<size_t>(row * 3) + n], alone[n]);
      }
    }
  }
}

TEST(CpuLinear, ZeroRowsAndZeroActivations) {
  const auto backend = prepared_cpu();
  const StoredWeight w = make_weight(DType::kE4m3, 9, 256, 9);
  EXPECT_TRUE(run(*backend, {}, w, 0, 0, true).empty());
  const std::vector<float> y = run(*backend, std::vector<float>(256, 0.0f), w, 0, 1, true);
  EXPECT_EQ(y, std::vector<float>(9, 0.0f));
}

// B38: per-head products of any width, powers of two or not.
TEST(CpuLinear, AbsorbAndUpProjectByHead) {
  const auto backend = prepared_cpu();
  for (const int64_t nope : {24, 96, 128, 192, 256}) {
    for (const int64_t rows : {1, 3, 9}) {
      const int64_t heads = 5, latent = 72, rope = 8, width = nope + rope;
      SCOPED_TRACE(nope);
      const StoredWeight w_uk = make_weight(DType::kBf16, heads * latent, nope, 10);
      const std::vector<float> q = CaseRandom(11).bf16_normals(rows * heads * width);
      std::vector<int32_t> positions;
      for (int32_t t = 0; t < rows; ++t) positions.push_back(2 * t);
      std::vector<float> cos, sin;
      for (int p = 0; p < 2 * rows; ++p) {
        for (int i = 0; i < rope / 2; ++i) {
          cos.push_back(static_cast<float>(std::cos(0.3 * p / (i + 1))));
          sin.push_back(static_cast<float>(std::sin(0.3 * p / (i + 1))));
        }
      }
      ops::BatchRows batch;
      batch.num_rows = static_cast<int32_t>(rows);
      batch.positions = positions.data();
      std::vector<float> q_latent(static_cast<size_t>(rows * heads * latent), NAN);
      std::vector<float> q_rope(static_cast<size_t>(rows * heads * rope), NAN);
      backend->absorb_query({&batch,
                             q.data(),
                             w_uk.view(),
                             {cos.data(), sin.data(), static_cast<int32_t>(rope)},
                             static_cast<int32_t>(heads),
                             static_cast<int32_t>(nope),
                             q_latent.data(),
                             q_rope.data()});
      const StoredWeight w_uv = make_weight(DType::kF32, heads * 10, latent, 12);
      std::vector<float> out(static_cast<size_t>(rows * heads * 10), NAN);
      backend->up_project({static_cast<int32_t>(rows), q_latent.data(), w_uv.view(),
                           static_cast<int32_t>(heads), out.data()});
      for (int64_t th = 0; th < rows * heads; ++th) {
        const int64_t h = th % heads, t = th / heads;
        for (int64_t c = 0; c < latent; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < nope; ++k) {
            sum += static_cast<double>(q[static_cast<size_t>(th * width + k)]) *
                   w_uk.value(h * latent + c, k);
          }
          ASSERT_NEAR(q_latent[static_cast<size_t>(th * latent + c)], sum, 1e-4);
        }
        for (int64_t i = 0; i < rope / 2; ++i) {
          const double angle = 0.3 * static_cast<double>(2 * t) / static_cast<double>(i + 1);
          const double a = q[static_cast<size_t>(th * width + nope + 2 * i)];
          const double b = q[static_cast<size_t>(th * width + nope + 2 * i + 1)];
          ASSERT_NEAR(q_rope[static_cast<size_t>(th * rope + 2 * i)],
                      a * std::cos(angle) - b * std::sin(angle), 1e-5);
          ASSERT_NEAR(q_rope[static_cast<size_t>(th * rope + 2 * i + 1)],
                      b * std::cos(angle) + a * std::sin(angle), 1e-5);
        }
        for (int64_t v = 0; v < 10; ++v) {
          double sum = 0;
          for (int64_t c = 0; c < latent; ++c) {
            sum += static_cast<double>(q_latent[static_cast<size_t>(th * latent + c)]) *
                   w_uv.value(h * 10 + v, c);
          }
          ASSERT_NEAR(out[static_cast<size_t>(th * 10 + v)], sum, 2e-5 * std::fabs(sum) + 1e-3);
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow::testing
