// winnow inspect as a user runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "backends/cpu/kernels.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "testing/checkpoint_editor.h"
#include "testing/paths.h"
#include "testing/program.h"
#include "testing/real_checkpoints.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

using testing::ProgramResult;

ProgramResult inspect(const std::string& arguments) {
  return testing::run_program(std::string(WINNOW_PROGRAM) + " inspect " + arguments);
}

json::Value inspect_json(const std::string& arguments) {
  const ProgramResult result = inspect(arguments + " --json");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  auto parsed = json::parse(result.output);
  EXPECT_TRUE(parsed.ok()) << result.output;
  return parsed.ok() ? parsed.value() : json::Value();
}

int64_t number(const json::Value& value, std::initializer_list<const char*> path) {
  const json::Value* at = &value;
  for (const char* key : path) {
    at = at->find(key);
    if (at == nullptr) {
      ADD_FAILURE() << "no " << key;
      return -1;
    }
  }
  return at->as_integer();
}

// tokens_that_fit of the row with this layout; -1 when there is none.
int64_t tokens_that_fit(const json::Value& inspection, const char* latent_layout) {
  for (const json::Value& cache : inspection.find("caches")->as_array()) {
    if (cache.find("latent_layout")->as_string() == latent_layout) {
      return number(cache, {"tokens_that_fit"});
    }
  }
  return -1;
}

TEST(Inspect, CountsGlm52ByTensor) {
  testing::TempFolder folder;
  testing::glm52_fp8().write_sparse(folder.path());
  const json::Value report =
      inspect_json(folder.path() + " --memory 141GB --mem-fraction-static 0.9 --tp 8");
  EXPECT_EQ(number(report, {"tensors"}), 118629);
  EXPECT_EQ(number(report, {"files"}), 141);
  EXPECT_EQ(number(report, {"parts", "mtp", "tensors"}), 1569);
  EXPECT_EQ(number(report, {"parts", "experts", "tensors"}), 75 * 256 * 6);
  EXPECT_EQ(number(report, {"num_indexer_layers"}), 21);
  EXPECT_TRUE(report.find("unknown_tensors")->as_array().empty());
  const json::Value& layers = *report.find("layers");
  EXPECT_EQ(layers.as_array().size(), 78u);
  EXPECT_EQ(layers.as_array()[5].find("indexer")->as_string(), "shared");
  EXPECT_EQ(number(layers.as_array()[5], {"topk_layer"}), 2);
  EXPECT_EQ(layers.as_array()[2].find("feed_forward")->as_string(), "dense");
  // What a rank holds, and a token's price in the 656-byte layout: 78 * 656 + 21 * 132 = 53,940 B.
  const int64_t weights = number(report, {"memory", "weight_bytes"});
  EXPECT_EQ(tokens_that_fit(report, "latent_fp8_656"),
            (static_cast<int64_t>(141e9 * 0.9) - weights) / (64 * 53940) * 64);
}

TEST(Inspect, CountsDeepseekV32ByTensor) {
  testing::TempFolder folder;
  testing::deepseek_v32().write_sparse(folder.path());
  const json::Value report = inspect_json(folder.path());
  EXPECT_EQ(number(report, {"tensors"}), 92425);
  EXPECT_EQ(number(report, {"parts", "mtp", "tensors"}), 1571);
  EXPECT_EQ(report.find("family")->as_string(), "DeepSeek-V3.2");
}

TEST(Inspect, PrintsTables) {
  const ProgramResult result = inspect(testing::data_path("tiny_glm52") + " --memory 1GB");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part :
       {"GLM-5", "263 tensors in 1 file", "617,520",
        "1-2, 6      3  2 of 8 experts and shared  full",
        "3-5         3  2 of 8 experts and shared  shared", "backend cpu: serves this model with ",
        "sparse MLA    latent_fp8_656 ", "latent_fp8_656 + index_key_fp8_132", "tokens that fit",
        "of 1.0 GB a device"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  }
}

// "op of": "kernel" of every row that inspect lists for the CPU.
std::map<std::string, std::string> kernels_of(const json::Value& report) {
  std::map<std::string, std::string> kernels;
  for (const json::Value& row :
       report.find("backends")->as_array()[0].find("kernels")->as_array()) {
    kernels[row.find("op")->as_string() + " " + row.find("of")->as_string()] =
        row.find("kernel")->as_string();
  }
  return kernels;
}

TEST(Inspect, NamesTheKernelsThatServe) {
  testing::TempFolder folder;
  testing::glm52_fp8().write_sparse(folder.path());
  const json::Value report = inspect_json(folder.path());
  EXPECT_EQ(report.find("backends")->as_array()[0].find("instruction_set")->as_string(),
            backends::best_kernels().isa);
  auto kernels = kernels_of(report);
  EXPECT_EQ(kernels["linear e4m3 weights, 1 to 4 rows"],
            "pack_rows, linear_tile<E4m3Weights>, few_rows");
  // Of kv_b_proj, which the loader multiplies out.
  EXPECT_EQ(kernels["linear bf16 weights, more rows"],
            "pack_rows, linear_tile<Bf16Weights>, many_rows");
  EXPECT_EQ(kernels["sparse MLA latent_fp8_644"], "read_fp8_644, attend_group, merge_states");
  EXPECT_EQ(kernels["sparse MLA latent_bf16_1152"], "read_bf16_1152, attend_group, merge_states");
  EXPECT_EQ(kernels["index logits index_key_fp8_132"], "read_fp8_132, product, combine_heads");
  EXPECT_EQ(kernels["index logits index_key_bf16_256"], "read_bf16_256, product, combine_heads");
  EXPECT_EQ(kernels["top-k any row"], "best_positions");
  EXPECT_EQ(kernels.count("dense MLA latent_fp8_644"), 0u);
}

// A family without indexers attends over the page table: no index logits, no top-k.
TEST(Inspect, NamesDenseAttention) {
  auto kernels = kernels_of(inspect_json(testing::data_path("tiny_v3")));
  EXPECT_EQ(kernels["dense MLA latent_fp8_656"], "read_fp8_656, attend_group, merge_states");
  EXPECT_EQ(kernels.count("top-k any row"), 0u);
}

TEST(Inspect, WeightsThatDoNotFit) {
  const ProgramResult result = inspect(testing::data_path("tiny_glm") + " --memory 1MB");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.output.find("the weights do not fit"), std::string::npos) << result.output;
}

// Every failure is one line and exit code 1 (fault B76).
TEST(Inspect, FailuresAreOneLine) {
  testing::TempFolder folder;
  auto expect_line = [&](const std::string& arguments, const char* part) {
    const ProgramResult result = inspect(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    EXPECT_TRUE(result.output.starts_with("winnow: ")) << result.output;
    EXPECT_NE(result.output.find(part), std::string::npos) << result.output;
  };
  expect_line(folder.file("absent"), "absent");
  testing::CheckpointEditor(testing::data_path("tiny_glm")).write(folder.path());
  const std::string weights = folder.file("model.safetensors");
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 1);
  expect_line(folder.path(), "truncated");
  expect_line(testing::data_path("tiny_glm") + " --tp 3", "cannot be split over 3 ranks");
}

}  // namespace
}  // namespace winnow
