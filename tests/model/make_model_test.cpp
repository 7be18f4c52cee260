// tools/make_model.py: what it writes loads, is complete, and is the same each time.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "model/config.h"
#include "model/weights_manifest.h"
#include "testing/memory_backend.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

class MakeModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::run_program("python3 --version").exit_code != 0) GTEST_SKIP() << "no python3";
  }
  void make(const std::string& folder, const std::string& flags) {
    const auto result = testing::run_program(
        "python3 " WINNOW_SOURCE_DIR "/tools/make_model.py --output " + folder + " " + flags);
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  static ModelWeights load(const std::string& folder, ops::Backend& backend) {
    Progress silent(Progress::Style::kSilent);
    return load_weights(load_config(folder), std::make_shared<const Checkpoint>(folder), backend,
                        {}, silent);
  }
};

TEST_F(MakeModel, DefaultIsCompleteAndHasKernelWidths) {
  testing::TempFolder folder;
  make(folder.path(), "");
  const ModelConfig config = load_config(folder.path());
  EXPECT_EQ(config.kv_lora_rank, 512);
  EXPECT_EQ(config.qk_rope_head_dim, 64);
  EXPECT_EQ(config.index_head_dim, 128);
  EXPECT_GT(config.num_indexer_layers(), 0);
  EXPECT_LT(config.num_indexer_layers(), config.num_hidden_layers);
  EXPECT_EQ(config.eos_token_ids.size(), 3u);
  testing::MemoryBackend backend(true);
  const ModelWeights weights = load(folder.path(), backend);
  EXPECT_LT(weights.mapped_bytes, 32'000'000);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "generation_config.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
}

TEST_F(MakeModel, Fp8ShardsDraftLayerAndSameBytes) {
  testing::TempFolder first, second;
  const char* flags = "--fp8 --shards 3 --set num_nextn_predict_layers=1";
  make(first.path(), flags);
  make(second.path(), flags);
  testing::MemoryBackend backend(true);
  const ModelWeights weights = load(first.path(), backend);
  EXPECT_EQ(weights.checkpoint->num_files(), 3);
  EXPECT_EQ(weights.layers[1].moe->experts[0].up.dtype, DType::kE4m3);
  EXPECT_EQ(weights.layers[0].indexer->weights_proj.dtype, DType::kBf16);
  EXPECT_EQ(weights.lm_head.dtype, DType::kBf16);
  for (const auto& entry : std::filesystem::directory_iterator(first.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(read_file(first.file(name)), read_file(second.file(name))) << name;
  }
}

TEST_F(MakeModel, RefusesUnknownSizes) {
  testing::TempFolder folder;
  const auto result =
      testing::run_program("python3 " WINNOW_SOURCE_DIR "/tools/make_model.py --output " +
                           folder.path() + " --set hidden=512");
  EXPECT_EQ(result.exit_code, 2) << result.output;
}

}  // namespace
}  // namespace winnow::model
