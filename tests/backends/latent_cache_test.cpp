// Writing latents, and copying parts of pages.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

using layout::LatentLayout;

constexpr LatentLayout kLayouts[] = {LatentLayout::kF32, LatentLayout::kBf16_1152,
                                     LatentLayout::kFp8_656, LatentLayout::kFp8_644,
                                     LatentLayout::kFp8_576};

struct Append {
  PagedRows rows;
  LatentBytes cache;
};

// Rope of angle 0: the roped key is stored as it is.
Append append(ops::Backend& backend,
              const layout::LatentGeometry& g,
              PagedRows rows,
              const std::vector<float>& kv,
              const std::vector<float>& weight,
              float scale,
              const std::vector<float>* cos = nullptr,
              const std::vector<float>* sin = nullptr) {
  Append a{std::move(rows), LatentBytes(g, 0, 0)};
  a.cache = LatentBytes(g, a.rows.num_pages, 40, scale);
  const std::vector<float> ones(4096, 1.0f), zeros(4096, 0.0f);
  const ops::BatchRows view = a.rows.view();
  backend.append_latent({&view,
                         kv.data(),
                         weight.data(),
                         1e-5f,
                         {(cos != nullptr ? *cos : ones).data(),
                          (sin != nullptr ? *sin : zeros).data(), g.qk_rope_head_dim},
                         a.cache.view(a.cache.bytes.data())});
  return a;
}

TEST(CpuLatentCache, AppendNormsRotatesAndRounds) {
  const auto backend = prepared_cpu(2);
  for (const LatentLayout which : kLayouts) {
    for (const auto& [c, r, page] : {std::tuple{512, 64, 64}, {130, 8, 5}, {16, 4, 1}}) {
      SCOPED_TRACE(std::string(to_string(which)) + " " + std::to_string(c));
      PagedRows rows = make_paged_rows({{0, 9}, {7, 3}}, page, 2, 6);
      rows.write_slots[4] = -1;
      const int64_t width = c + r;
      const std::vector<float> kv = CaseRandom(51).bf16_normals(rows.num_rows() * width, 2.0f);
      const std::vector<float> weight = CaseRandom(52).bf16_normals(c);
      std::vector<float> cos, sin;
      for (int i = 0; i < 10 * r / 2; ++i) {
        cos.push_back(static_cast<float>(std::cos(0.1 * i)));
        sin.push_back(static_cast<float>(std::sin(0.1 * i)));
      }
      const Append a = append(*backend, {which, c, r, page}, rows, kv, weight, 0.02f, &cos, &sin);
      for (int64_t t = 0; t < rows.num_rows(); ++t) {
        const int32_t position = rows.positions[static_cast<size_t>(t)];
        const std::vector<double> got = a.cache.read(rows.row_slot(t, position));
        if (t == 4) {
          for (const double v : got) ASSERT_TRUE(std::isnan(v));
          continue;
        }
        std::vector<double> exact(kv.begin() + t * width, kv.begin() + (t + 1) * width);
        double squares = 0;
        for (int i = 0; i < c; ++i) squares += exact[i] * exact[i];
        const double factor = 1 / std::sqrt(squares / c + 1e-5);
        double amax = 0;
        for (int i = 0; i < c; ++i) {
          exact[i] *= factor * weight[i];
          amax = std::max(amax, std::fabs(exact[i]));
        }
        for (int i = 0; i < r / 2; ++i) {
          const double angle = 0.1 * (position * (r / 2) + i);
          const double x = exact[c + 2 * i], y = exact[c + 2 * i + 1];
          exact[c + 2 * i] = x * std::cos(angle) - y * std::sin(angle);
          exact[c + 2 * i + 1] = y * std::cos(angle) + x * std::sin(angle);
        }
        for (int64_t i = 0; i < width; ++i) {
          const double value = exact[static_cast<size_t>(i)];
          const bool fp8 =
              which == LatentLayout::kFp8_576 || (which > LatentLayout::kBf16_1152 && i < c);
          const double tolerance = which == LatentLayout::kF32 ? 4e-6 * std::max(1.0, amax)
                                   : fp8 ? std::fabs(value) / 15.9 + amax * 1e-4
                                         : std::fabs(value) / 255 + 1e-5;
          ASSERT_NEAR(got[static_cast<size_t>(i)], value, tolerance) << "row " << t << " " << i;
        }
      }
    }
  }
}

// B34: zero rows, one zero group among others, and values of 1e-30 reload finite and close.
TEST(CpuLatentCache, ZeroAndTinyLatents) {
  const auto backend = prepared_cpu(1);
  for (const LatentLayout which : kLayouts) {
    SCOPED_TRACE(to_string(which));
    const int c = 512, r = 64;
    const PagedRows rows = make_paged_rows({{0, 3}}, 64, 0, 1);
    std::vector<float> kv(static_cast<size_t>(3 * (c + r)), 0.0f);
    for (int i = 0; i < c; ++i) {
      kv[static_cast<size_t>(c + r + i)] = i / 128 == 2 ? 0.0f : 1.0f;
      kv[static_cast<size_t>(2 * (c + r) + i)] = 1e-30f;
    }
    const std::vector<float> weight(c, 1.0f);
    const Append a = append(*backend, {which, c, r, 64}, rows, kv, weight, 0.01f);
    for (int t = 0; t < 3; ++t) {
      const std::vector<double> got = a.cache.read(rows.row_slot(t, t));
      for (int i = 0; i < c + r; ++i) {
        ASSERT_TRUE(std::isfinite(got[static_cast<size_t>(i)]));
        const double expected = t == 1 && i < c && i / 128 != 2 ? 1 / std::sqrt(0.75 + 1e-5) : 0.0;
        ASSERT_NEAR(got[static_cast<size_t>(i)], expected, 0.04);
      }
    }
  }
}

// B35: one scale for the layer serves latent and roped key alike, whatever the scale, and attention
// reads back what was written.
TEST(CpuLatentCache, LayerScaleIsAppliedOnceEachWay) {
  const auto backend = prepared_cpu(1);
  const int c = 128, r = 16;
  const PagedRows rows = make_paged_rows({{0, 1}}, 64, 0, 1);
  std::vector<float> kv(static_cast<size_t>(c + r), 1.0f);
  const std::vector<float> weight(c, 0.05f);
  for (const float scale : {1.0f, 0.5f, 2.0f}) {
    const Append a = append(*backend, {LatentLayout::kFp8_576, c, r, 64}, rows, kv, weight, scale);
    const std::vector<double> got = a.cache.read(rows.slot(0, 0));
    EXPECT_NEAR(got[0], 0.05, 0.05 * 0.04);
    EXPECT_NEAR(got[static_cast<size_t>(c)], 1.0, 0.04);
    LatentBytes bytes = a.cache;
    const std::vector<float> q_latent(static_cast<size_t>(c), 0.1f);
    const std::vector<float> q_rope(static_cast<size_t>(r), 0.1f);
    const int32_t slot = rows.slot(0, 0), len = 1;
    std::vector<float> out(static_cast<size_t>(c), NAN);
    float lse = NAN;
    const ops::BatchRows view = rows.view();
    backend->sparse_mla({&view, q_latent.data(), q_rope.data(), &slot, &len, 1, 1, 1.0f,
                         bytes.view(bytes.bytes.data()), out.data(), &lse});
    EXPECT_NEAR(out[5], 0.05, 0.05 * 0.04);
    EXPECT_NEAR(lse, 128 * 0.1 * 0.05 + 16 * 0.1, 0.1);
  }
}

TEST(CpuLatentCacheDeathTest, BadLayerScales) {
  const auto backend = prepared_cpu(1);
  const PagedRows rows = make_paged_rows({{0, 1}}, 64, 0, 1);
  const std::vector<float> kv(144, 1.0f), weight(128, 1.0f);
  for (const float scale : {0.0f, -1.0f, NAN}) {
    EXPECT_DEATH(append(*backend, {LatentLayout::kFp8_576, 128, 16, 64}, rows, kv, weight, scale),
                 "scale");
  }
}

// B40: a copied token is the same token, scales included; its neighbours stay.
TEST(CpuLatentCache, CopiesKeepEveryByte) {
  const auto backend = prepared_cpu(1);
  for (const LatentLayout which : kLayouts) {
    SCOPED_TRACE(to_string(which));
    const int page = 8;
    LatentBytes cache({which, 130, 8, page}, 4, 12, 0.1f);
    for (int64_t slot = 0; slot < 2 * page; ++slot) {
      cache.write(slot, CaseRandom(static_cast<uint64_t>(slot)).bf16_normals(138));
    }
    LatentBytes copy = cache;
    backend->copy_latent({copy.view(copy.bytes.data()), page + 2, 3 * page + 1, 5});
    for (int64_t slot = 0; slot < 4 * page; ++slot) {
      const bool target = slot >= 3 * page + 1 && slot < 3 * page + 6;
      const std::vector<double> got = copy.read(slot);
      const std::vector<double> want = cache.read(target ? slot - 3 * page - 1 + page + 2 : slot);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])));
      }
    }
  }
  for (const layout::IndexKeyLayout which :
       {layout::IndexKeyLayout::kF32, layout::IndexKeyLayout::kBf16_256,
        layout::IndexKeyLayout::kFp8_132}) {
    IndexKeyBytes cache({which, 32, 4}, 3, 4);
    for (int64_t slot = 0; slot < 4; ++slot) {
      cache.write(slot, CaseRandom(static_cast<uint64_t>(slot)).bf16_normals(32));
    }
    IndexKeyBytes copy = cache;
    backend->copy_index_keys({copy.view(copy.bytes.data()), 0, 8, 3});
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(copy.read(8 + i), cache.read(i));
    EXPECT_TRUE(std::isnan(copy.read(11)[0]));
    EXPECT_EQ(copy.read(3), cache.read(3));
  }
}

}  // namespace
}  // namespace winnow::testing
