// winnow score as a user runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/json.h"
#include "base/mapped_file.h"
#include "model/safetensors.h"
#include "testing/loaded_fixture.h"
#include "testing/paths.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow::app {
namespace {

using model::SafetensorsFile;
using testing::Expected;

constexpr int kCases = 7;

// The cases of a fixture's expected.safetensors, as score's input.
std::string write_cases(const testing::TempFolder& folder, const Expected& expected) {
  std::string lines;
  for (int n = 0; n < kCases; ++n) {
    json::Array ids;
    for (const int32_t id : expected.ints(fmt::format("case{}.input_ids", n))) {
      ids.emplace_back(int64_t{id});
    }
    lines += json::dump(json::Object{{"input_ids", std::move(ids)}}) + '\n';
  }
  return folder.write("cases.jsonl", lines);
}

template <typename T>
std::span<const T> read(const SafetensorsFile& file, const std::string& name) {
  for (const model::TensorEntry& tensor : file.tensors()) {
    if (tensor.name != name) continue;
    return {reinterpret_cast<const T*>(file.data(tensor)), static_cast<size_t>(tensor.elements())};
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

float worst_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

class Score : public ::testing::Test {
 protected:
  Score() : expected_("tiny_glm"), cases_(write_cases(folder_, expected_)) {}

  testing::ProgramResult run(const std::string& more) {
    return testing::run_program(fmt::format("{} score --model-path {} --input {} --output {} {}",
                                            WINNOW_PROGRAM, testing::data_path("tiny_glm"), cases_,
                                            folder_.file("out.safetensors"), more));
  }
  SafetensorsFile scored(const std::string& more) {
    const auto result = run(more);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return SafetensorsFile(folder_.file("out.safetensors"));
  }
  std::vector<float> logits(const std::string& more) {
    const SafetensorsFile out = scored(more);
    const auto last = read<float>(out, fmt::format("case{}.logits", kCases - 1));
    return {last.begin(), last.end()};
  }

  const testing::TempFolder folder_;
  const Expected expected_;
  const std::string cases_;
};

// Every reference checkpoint, in pages and chunks of odd sizes.
class ScoreFixtures : public ::testing::TestWithParam<const char*> {};

TEST_P(ScoreFixtures, WritesWhatTheReferenceFound) {
  const testing::TempFolder folder;
  const Expected expected(GetParam());
  const std::string path = folder.file("out.safetensors");
  const auto result = testing::run_program(fmt::format(
      "{} score --model-path {} --input {} --output {} --precision reference "
      "--dump hidden,topk --chunk 16 --page-size 5 --threads 1",
      WINNOW_PROGRAM, testing::data_path(GetParam()), write_cases(folder, expected), path));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const SafetensorsFile out(path);
  size_t num_topk = 0;
  for (int n = 0; n < kCases; ++n) {
    const std::string prefix = fmt::format("case{}.", n);
    for (const char* name : {"logits", "hidden"}) {
      EXPECT_LE(worst_difference(read<float>(out, prefix + name), expected.floats(prefix + name)),
                2e-4f)
          << prefix << name;
    }
    for (int layer = 0; layer < 8; ++layer) {
      const std::string topk = fmt::format("{}topk.layer{}", prefix, layer);
      if (!expected.has(topk)) continue;
      ++num_topk;
      const auto got = read<int32_t>(out, topk);
      const auto want = expected.ints(topk);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end())) << topk;
    }
  }
  EXPECT_EQ(out.tensors().size(), 2 * kCases + num_topk);  // and nothing else
}

INSTANTIATE_TEST_SUITE_P(
    All,
    ScoreFixtures,
    ::testing::Values("tiny_v32", "tiny_glm", "tiny_glm52", "tiny_v3", "wide_glm_bf16"),
    [](const auto& info) { return std::string(info.param); });

// The trace is JSON that a viewer of Chrome traces takes, with the phases and ops of every step.
TEST_F(Score, WritesATraceOfItsSteps) {
  const std::string path = folder_.file("trace.json");
  const auto result = run("--chunk 16 --threads 1 --trace " + path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto parsed = json::parse(read_file(path));
  ASSERT_TRUE(parsed.ok());
  std::map<std::string, int> spans;
  for (const json::Value& event : parsed.value().find("traceEvents")->as_array()) {
    EXPECT_EQ(event.find("ph")->as_string(), "X");
    EXPECT_TRUE(event.find("ts")->is_number());
    EXPECT_GE(event.find("dur")->as_number(), 0);
    EXPECT_TRUE(event.find("pid")->is_number() && event.find("tid")->is_number());
    ++spans[event.find("name")->as_string()];
  }
  // Cases of 1, 5, 8, 9, 17, 40 and 70 tokens are 1 + 1 + 1 + 1 + 2 + 3 + 5 chunks of 4 layers.
  EXPECT_EQ(spans["sparse_mla"], 14 * 4);
  EXPECT_EQ(spans["moe"], 14 * 3);
  EXPECT_EQ(spans["select_tokens"], 14 * 2);  // two of the layers share
}

// The same flags as serve's name the cache.
TEST_F(Score, TakesTheOptionsOfTheCache) {
  const auto reference = logits("--precision reference");
  const auto bf16 = logits("--kv-cache-dtype bfloat16");
  const auto fp8 = logits("--kv-cache-dtype fp8_e4m3");
  const auto fp8_unscaled =
      logits("--kv-cache-dtype fp8_e4m3 --nsa-prefill trtllm --nsa-decode trtllm");
  const auto fp8_token_scale = logits("--kv-cache-dtype fp8_e4m3 --dsa-prefill winnow");
  EXPECT_NE(bf16, fp8);
  EXPECT_EQ(fp8, fp8_token_scale);  // this model's latent is one group of channels
  EXPECT_NE(fp8, fp8_unscaled);
  EXPECT_EQ(logits("--kv-cache-dtype auto"), bf16);
  EXPECT_NE(bf16, reference);
  const std::string config = folder_.write("score.json", R"({"kv-cache-dtype":"fp8_e4m3"})");
  EXPECT_EQ(logits("--config " + config), fp8);
}

TEST_F(Score, FailuresAreOneLine) {
  const auto expect_line = [&](const std::string& more, const char* part) {
    const auto result = run(more);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(part), std::string::npos) << result.output;
  };
  expect_line("--dump bogus", "--dump bogus: expected one of hidden, topk");
  expect_line("--kv-cache-dtype int3", "expected one of auto");
  expect_line("--input /nowhere.jsonl", "/nowhere.jsonl: cannot be read");
  expect_line("--tp 2", "--tp 2: the CPU backend is one device");
  expect_line("--input " + folder_.write("bad.jsonl", "{\"input_ids\":[1,512]}\n"),
              "bad.jsonl:1: input_ids");
  expect_line("--input /", "/: cannot be read");
  expect_line("--output " + cases_, "is the input");
  expect_line("--output /nowhere/out", "/nowhere/out");
  std::string ids = "1";
  constexpr int kPositions = 4096;  // of tiny_glm
  for (int i = 0; i < kPositions; ++i) ids += ",1";
  expect_line("--input " + folder_.write("long.jsonl", " \r\n{\"input_ids\":[" + ids + "]}\r\n"),
              "long.jsonl:2: ");
}

// A row of options has one meaning in every subcommand.
TEST(BenchOffline, TakesTheOptionsOfTheCache) {
  const auto result = testing::run_program(fmt::format(
      "{} bench offline --model-path {} --kv-cache-dtype fp8_e4m3 --page-size 16 --json "
      "--prefill-rows 64 --contexts 64,128 --decode-steps 1 --threads 1",
      WINNOW_PROGRAM, testing::data_path("tiny_glm")));
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto parsed = json::parse(result.output.substr(result.output.find("{\"results")));
  ASSERT_TRUE(parsed.ok()) << result.output;
  const json::Array& rows = parsed.value().find("results")->as_array();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].find("context")->as_integer(), 64);
  EXPECT_EQ(rows[2].find("context")->as_integer(), 128);
}

}  // namespace
}  // namespace winnow::app
