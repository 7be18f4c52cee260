#include "model/memory_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/mapped_file.h"
#include "kv/kv_storage.h"
#include "model/numerics.h"
#include "testing/checkpoint_editor.h"
#include "testing/errors.h"
#include "testing/memory_backend.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;

kv::CachePlan plan_of(const std::string& config_name, LatentLayout latent, int32_t page_size) {
  const std::string path = testing::data_path("configs/" + config_name + ".json");
  const ModelConfig config = parse_config(read_file(path), path);
  return plan_cache(config,
                    choose_numerics(config, Precision::kDefault, latent, IndexKeyLayout::kFp8_132),
                    page_size);
}

// Fault B52: index keys are part of a token's price, on the layers that own an indexer only.
TEST(MemoryPlan, BytesOfAToken) {
  EXPECT_EQ(plan_of("glm52_fp8", LatentLayout::kFp8_656, 64).bytes_per_token(),
            78 * 656 + 21 * 132);
  EXPECT_EQ(plan_of("glm5", LatentLayout::kBf16_1152, 64).bytes_per_token(), 78 * (1152 + 132));
  EXPECT_EQ(plan_of("deepseek_v32", LatentLayout::kFp8_576, 64).bytes_per_token(),
            61 * (576 + 132));
  EXPECT_EQ(plan_of("deepseek_v32", LatentLayout::kFp8_644, 64).bytes_per_token(),
            61 * (644 + 132));
  EXPECT_EQ(plan_of("kimi_k2", LatentLayout::kFp8_656, 64).bytes_per_token(), 61 * 656);
}

// Fault B52: what was planned is what is allocated, to the byte, and one page more would not fit.
TEST(MemoryPlan, PlannedIsAllocated) {
  for (LatentLayout latent : {LatentLayout::kBf16_1152, LatentLayout::kFp8_656,
                              LatentLayout::kFp8_644, LatentLayout::kFp8_576, LatentLayout::kF32}) {
    for (int32_t page_size : {1, 16, 64}) {
      const kv::CachePlan cache = plan_of("glm52_fp8", latent, page_size);
      const int64_t memory = 50'000'000, weights = 7'000'001;
      const MemoryPlan plan = plan_memory(memory, weights, cache);
      testing::MemoryBackend backend(true);
      const kv::KvStorage storage(cache, static_cast<int32_t>(plan.num_pages),
                                  [&](int64_t bytes) { return backend.allocate(bytes); });
      EXPECT_EQ(backend.allocated_bytes(), plan.cache_bytes);
      EXPECT_EQ(storage.allocated_bytes(), plan.cache_bytes);
      EXPECT_LE(weights + plan.cache_bytes, memory);
      EXPECT_GT(weights + plan.cache_bytes + cache.bytes_per_page(), memory);
      EXPECT_EQ(plan.num_tokens, plan.num_pages * page_size);
    }
  }
}

TEST(MemoryPlan, WeightsTooLargeAndSlotsOfInt32) {
  const kv::CachePlan cache = plan_of("kimi_k2", LatentLayout::kFp8_656, 64);
  EXPECT_EQ(plan_memory(10, 11, cache).num_pages, 0);
  EXPECT_EQ(plan_memory(int64_t{1} << 50, 0, cache).num_tokens,
            std::numeric_limits<int32_t>::max() / 64 * 64);
}

// The loader allocates what was planned, up to its alignment of 256 bytes a tensor.
TEST(MemoryPlan, WeightBytesAreThoseLoaded) {
  const std::string folder = testing::data_path("wide_glm_bf16");
  const ModelConfig config = load_config(folder);
  const auto checkpoint = std::make_shared<const Checkpoint>(folder);
  ModelWeights shapes;
  const std::vector<WeightSlot> slots = make_slots(config, shapes);
  testing::MemoryBackend device(false);
  Progress silent(Progress::Style::kSilent);
  const ModelWeights weights = load_weights(config, checkpoint, device, {}, silent);
  const int64_t planned = planned_weight_bytes(slots, *checkpoint, 1, false);
  EXPECT_GE(weights.copied_bytes, planned);
  EXPECT_LE(weights.copied_bytes, planned + static_cast<int64_t>(slots.size()) * 2 * 256);
}

// Fault B80, in whole numbers: rows of merged parts over ranks. Either a rank's rows with the scale
// rows of its own shard are the slice of the whole weight, or the split is refused.
TEST(MemoryPlan, BlockScaledShardsAreSlicesOfTheWhole) {
  const std::vector<std::vector<int64_t>> merged = {
      {320, 320}, {96, 96, 96}, {256, 64, 32}, {576}, {2048, 6144}, {16384}, {128, 256}};
  int allowed = 0, refused = 0;
  for (const auto& parts : merged) {
    for (int32_t num_ranks : {1, 2, 4, 8, 16}) {
      for (int64_t rows : parts) {
        int64_t covered = 0;
        for (int32_t rank = 0; rank < num_ranks; ++rank) {
          const auto range = split_range(rows, rank, num_ranks, true);
          if (!range) {
            EXPECT_TRUE(rows % num_ranks != 0 || rows / num_ranks % 128 != 0) << rows;
            ++refused;
            break;
          }
          ++allowed;
          ASSERT_EQ(range->begin, covered);
          covered += range->size;
          for (int64_t r = 0; r < range->size; ++r) {
            const int64_t scale_row = r / 128;  // as every kernel finds it inside the shard
            ASSERT_LT(scale_row, range->scale_size);
            ASSERT_EQ(range->scale_begin + scale_row, (range->begin + r) / 128) << rows;
          }
        }
        EXPECT_TRUE(covered == rows || !split_range(rows, 0, num_ranks, true)) << rows;
      }
    }
  }
  EXPECT_GT(allowed, 50);
  EXPECT_GT(refused, 10);
}

TEST(MemoryPlan, SplitThatDoesNotFitNamesTheTensor) {
  testing::TempFolder folder;
  testing::CheckpointEditor editor(testing::data_path("tiny_glm"));
  const std::string name = "model.layers.1.mlp.experts.0.up_proj.weight";
  editor.tensors[name] = testing::EditableTensor::e4m3({32, 64}, std::vector<float>(32 * 64));
  editor.tensors[scale_name(name)] = testing::EditableTensor::f32({1, 1}, {1});
  editor.write(folder.path());
  const ModelConfig config = load_config(folder.path());
  ModelWeights shapes;
  const std::vector<WeightSlot> slots = make_slots(config, shapes);
  const Checkpoint checkpoint(folder.path());
  EXPECT_GT(planned_weight_bytes(slots, checkpoint, 1, false), 0);
  testing::expect_says(
      testing::error_of([&] { planned_weight_bytes(slots, checkpoint, 2, false); }),
      {name.c_str(), "2 ranks", "128"});
  testing::expect_says(
      testing::error_of([&] { planned_weight_bytes(slots, checkpoint, 3, false); }),
      {"cannot be split over 3 ranks"});
}

}  // namespace
}  // namespace winnow::model
