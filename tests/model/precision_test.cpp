// What each cache layout and key format costs, against the fp32 expectations of the fixtures.
// While every token is chosen (length <= index_topk) only rounding shows, and the errors of the
// first layer's hidden states and of the logits are bounded. Beyond it rounded scores swap tokens
// near the border: of layer 0, whose input is exact, most choices must still be the reference's.
// (That what was chosen instead scores nearly as well is a test of the op, tests/backends.)
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "model/weights_manifest.h"
#include "testing/checkpoint_editor.h"
#include "testing/loaded_fixture.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using testing::EditableTensor;
using testing::Expected;
using testing::LoadedFixture;

struct Bound {
  const char* fixture;
  LatentLayout latent;
  IndexKeyLayout index_key;
  // Of the median row, rms error / rms. Of the rows of these random models some meet another
  // expert, because rounding turned two near each other around: their logits are far off.
  double hidden_error;  // of the hidden states after the first layer
  double logits_error;  // of the logits
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

// rms error / rms of each row of width values.
void add_row_errors(std::span<const float> got,
                    std::span<const float> want,
                    int64_t width,
                    std::vector<double>& errors) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t begin = 0; begin < want.size(); begin += static_cast<size_t>(width)) {
    double error = 0, power = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(width); ++i) {
      error += std::pow(got[i] - want[i], 2);
      power += std::pow(want[i], 2);
    }
    errors.push_back(std::sqrt(error / power));
  }
}

// The median row is within the bound; a bound that is far too wide would not notice a fault.
void expect_within(std::vector<double> errors, double bound, const char* name) {
  ASSERT_FALSE(errors.empty());
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  const double median = errors[errors.size() / 2];
  ::testing::Test::RecordProperty(name, std::to_string(median));
  EXPECT_LE(median, bound) << name;
  EXPECT_GE(median, bound / 4) << name;
}

// Both errors over the cases in which every token is chosen.
void expect_errors(LoadedFixture& fixture, const Expected& expected, const Bound& bound) {
  const auto pages = testing::first_pages(64);
  std::vector<double> hidden, logits;
  for (int n = 0; n < 7; ++n) {
    const std::string prefix = "case" + std::to_string(n) + ".";
    const auto ids = expected.ints(prefix + "input_ids");
    const auto num_tokens = static_cast<int32_t>(ids.size());
    if (fixture.config.has_indexer() && num_tokens > fixture.config.index_topk) continue;
    FirstLayer first;
    const RowSlice slice{.tokens = ids, .num_rows = num_tokens, .pages = pages};
    add_row_errors(fixture.run({&slice, 1}, &first), expected.floats(prefix + "logits"),
                   fixture.config.vocab_size, logits);
    add_row_errors(
        first.hidden,
        expected.floats(prefix + "hidden").subspan(first.hidden.size(), first.hidden.size()),
        fixture.config.hidden_size, hidden);
  }
  expect_within(std::move(hidden), bound.hidden_error, "hidden_error");
  expect_within(std::move(logits), bound.logits_error, "logits_error");
}

TEST_P(PrecisionBounds, WhileEveryTokenIsChosen) {
  const Bound& bound = GetParam();
  LoadedFixture fixture(bound.fixture, {.precision = Precision::kDefault,
                                        .latent_layout = bound.latent,
                                        .index_key_layout = bound.index_key});
  expect_errors(fixture, Expected(bound.fixture), bound);
}

std::vector<float> values_of(const EditableTensor& tensor) {
  std::vector<float> values;
  const size_t size = tensor.dtype == "BF16" ? 2 : 4;
  for (size_t at = 0; at < tensor.bytes.size(); at += size) {
    uint32_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + at, size);
    values.push_back(std::bit_cast<float>(size == 2 ? bits << 16 : bits));
  }
  return values;
}

// All linears that FP8 checkpoints have in FP8, as they have them: e4m3, a scale for each block of
// 128 x 128 that brings its largest value to 448.
void quantise_linears(testing::CheckpointEditor& editor) {
  const auto whole = editor.tensors;
  for (const auto& [name, tensor] : whole) {
    const bool linear = name.find("_proj") != name.npos || name.find("indexer.w") != name.npos;
    if (!linear || tensor.shape.size() != 2 || name.find("weights_proj") != name.npos) continue;
    std::vector<float> values = values_of(tensor);
    const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
    const int64_t blocks = layout::ceil_div(cols, 128);
    const auto block_of = [&](size_t i) {
      const auto at = static_cast<int64_t>(i);
      return static_cast<size_t>(at / cols / 128 * blocks + at % cols / 128);
    };
    std::vector<float> scales(static_cast<size_t>(layout::ceil_div(rows, 128) * blocks));
    for (size_t i = 0; i < values.size(); ++i) {
      scales[block_of(i)] = std::max(scales[block_of(i)], std::abs(values[i]) / 448);
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] /= scales[block_of(i)];
    editor.tensors[name] = EditableTensor::e4m3({rows, cols}, values);
    editor.tensors[scale_name(name)] =
        EditableTensor::f32({layout::ceil_div(rows, 128), blocks}, scales);
  }
}

class Fp8Linears : public ::testing::TestWithParam<Bound> {};

TEST_P(Fp8Linears, WhileEveryTokenIsChosen) {
  const Bound& bound = GetParam();
  testing::CheckpointEditor editor(testing::data_path(bound.fixture));
  quantise_linears(editor);
  const testing::TempFolder folder;
  editor.write(folder.path());
  LoadedFixture fixture(folder.path(), {.precision = Precision::kDefault,
                                        .latent_layout = bound.latent,
                                        .index_key_layout = bound.index_key});
  expect_errors(fixture, Expected(bound.fixture), bound);
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
        Bound{"tiny_v32", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 2.5e-3, 0.0054},
        Bound{"tiny_v32", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.036, 0.08},
        Bound{"tiny_glm", LatentLayout::kBf16_1152, IndexKeyLayout::kBf16_256, 2.6e-3, 0.0053},
        Bound{"tiny_glm", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.034, 0.079},
        Bound{"tiny_glm", LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132, 0.034, 0.079},
        Bound{"tiny_glm", LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132, 0.045, 0.085},
        Bound{"tiny_v3", LatentLayout::kBf16_1152, IndexKeyLayout::kNone, 2.8e-3, 0.0068},
        Bound{"tiny_v3", LatentLayout::kFp8_656, IndexKeyLayout::kNone, 0.035, 0.16},
        Bound{"wide_glm_bf16", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 2.2e-3, 0.0041},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.032, 0.062},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132, 0.032, 0.064},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132, 0.035, 0.062}),
    [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    Fp8Linears,
    ::testing::Values(
        Bound{"tiny_glm", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 0.077, 0.2},
        Bound{"tiny_v3", LatentLayout::kFp8_656, IndexKeyLayout::kNone, 0.089, 0.44},
        Bound{"wide_glm_bf16", LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132, 0.07, 0.14},
        Bound{"wide_glm_bf16", LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132, 0.078, 0.15}),
    [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace winnow::model
