// What each cache layout and key format costs, against the fp32 expectations of the fixtures.
// While every token is chosen (length <= index_topk) only rounding shows, and the error of the
// hidden states is bounded. Beyond it rounded scores swap tokens near the border: of layer 0, whose
// input is exact, most choices must still be the reference's. (That what was chosen instead scores
// nearly as well is a test of the op, tests/backends.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/loaded_fixture.h"

namespace winnow::model {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using testing::Expected;
using testing::LoadedFixture;

struct Bound {
  const char* fixture;
  LatentLayout latent;
  IndexKeyLayout index_key;
  double relative_error;  // of the hidden state after the first layer: rms error / rms
};

std::string name_of(const Bound& b) {
  return std::string(b.fixture) + "_" + layout::to_string(b.latent) + "_" +
         layout::to_string(b.index_key);
}

void PrintTo(const Bound& b, std::ostream* out) { *out << name_of(b); }

// Layer 0 of one case: the hidden states after it, and what its indexer chose.
class FirstLayer final : public StepObserver {
 public:
  void on_hidden(int32_t idx, std::span<const float> rows) override {
    if (idx == 1) hidden.assign(rows.begin(), rows.end());
  }
  void on_topk(int32_t layer, std::span<const int32_t> slots) override {
    if (layer == 0) chosen.assign(slots.begin(), slots.end());
  }
  std::vector<float> hidden;
  std::vector<int32_t> chosen;
};

class PrecisionBounds : public ::testing::TestWithParam<Bound> {};

TEST_P(PrecisionBounds, FirstLayerWhileEveryTokenIsChosen) {
  const Bound& bound = GetParam();
  const Expected expected(bound.fixture);
  LoadedFixture fixture(bound.fixture, {.precision = Precision::kDefault,
                                        .latent_layout = bound.latent,
                                        .index_key_layout = bound.index_key});
  const auto pages = testing::first_pages(64);
  double error = 0, power = 0;
  for (int n = 0; n < 7; ++n) {
    const std::string prefix = "case" + std::to_string(n) + ".";
    const auto ids = expected.ints(prefix + "input_ids");
    const auto num_tokens = static_cast<int32_t>(ids.size());
    if (fixture.config.has_indexer() && num_tokens > fixture.config.index_topk) continue;
    FirstLayer first;
    const RowSlice slice{.tokens = ids, .num_rows = num_tokens, .pages = pages};
    fixture.run({&slice, 1}, &first);
    const auto want =
        expected.floats(prefix + "hidden").subspan(first.hidden.size(), first.hidden.size());
    for (size_t i = 0; i < want.size(); ++i) {
      error += std::pow(first.hidden[i] - want[i], 2);
      power += std::pow(want[i], 2);
    }
  }
  ASSERT_GT(power, 0);
  const double relative = std::sqrt(error / power);
  RecordProperty("relative_error", std::to_string(relative));
  EXPECT_LE(relative, bound.relative_error);
  // A bound that is far too wide would not notice a fault.
  EXPECT_GE(relative, bound.relative_error / 4);
}

struct Overlap {
  const char* fixture;
  IndexKeyLayout index_key;
  double least;  // share of the reference's choices that are chosen
};

std::string name_of(const Overlap& o) {
  return std::string(o.fixture) + "_" + layout::to_string(o.index_key);
}

void PrintTo(const Overlap& o, std::ostream* out) { *out << name_of(o); }

class SelectionOverlap : public ::testing::TestWithParam<Overlap> {};

TEST_P(SelectionOverlap, FirstLayerChoosesNearlyTheSame) {
  const Overlap& overlap = GetParam();
  const Expected expected(overlap.fixture);
  LoadedFixture fixture(overlap.fixture,
                        {.precision = Precision::kDefault, .index_key_layout = overlap.index_key});
  const auto pages = testing::first_pages(64);
  int64_t equal = 0, total = 0;
  for (int n = 4; n < 7; ++n) {  // 17, 40 and 70 tokens: longer than index_topk
    const std::string prefix = "case" + std::to_string(n) + ".";
    const auto ids = expected.ints(prefix + "input_ids");
    FirstLayer first;
    const RowSlice slice{
        .tokens = ids, .num_rows = static_cast<int32_t>(ids.size()), .pages = pages};
    fixture.run({&slice, 1}, &first);
    const auto want = expected.ints(prefix + "topk.layer0");
    const size_t k = fixture.config.index_topk;
    for (size_t row = k; row < ids.size(); ++row) {
      const auto got_row = std::span(first.chosen).subspan(row * k, k);
      for (const int32_t position : want.subspan(row * k, k)) {
        equal += std::find(got_row.begin(), got_row.end(), position) != got_row.end();
        ++total;
      }
    }
  }
  const double share = static_cast<double>(equal) / static_cast<double>(total);
  RecordProperty("share", std::to_string(share));
  EXPECT_GE(share, overlap.least);
}

INSTANTIATE_TEST_SUITE_P(
    Keys,
    SelectionOverlap,
    ::testing::Values(Overlap{"tiny_v32", IndexKeyLayout::kF32, 1.0},
                      Overlap{"tiny_v32", IndexKeyLayout::kBf16_256, 0.99},
                      Overlap{"tiny_v32", IndexKeyLayout::kFp8_132, 0.96},
                      Overlap{"tiny_glm", IndexKeyLayout::kBf16_256, 0.99},
                      Overlap{"tiny_glm", IndexKeyLayout::kFp8_132, 0.96},
                      Overlap{"wide_glm_bf16", IndexKeyLayout::kBf16_256, 0.99},
                      Overlap{"wide_glm_bf16", IndexKeyLayout::kFp8_132, 0.96}),
    [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    PrecisionBounds,
    ::testing::Values(
        Bound{"tiny_v32", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 2.5e-3},
        Bound{"tiny_v32", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.036},
        Bound{"tiny_glm", LatentLayout::kBf16_1152, IndexKeyLayout::kBf16_256, 2.6e-3},
        Bound{"tiny_glm", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.034},
        Bound{"tiny_glm", LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132, 0.034},
        Bound{"tiny_glm", LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132, 0.045},
        Bound{"tiny_v3", LatentLayout::kBf16_1152, IndexKeyLayout::kNone, 2.8e-3},
        Bound{"tiny_v3", LatentLayout::kFp8_656, IndexKeyLayout::kNone, 0.035},
        Bound{"wide_glm_bf16", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 2.2e-3},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.032},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132, 0.032},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132, 0.035}),
    [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace winnow::model
