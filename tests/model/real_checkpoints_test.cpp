// The full tensor lists of real models, as sparse files: every tensor is found, has the shape and
// type that the config asks for, and is counted.
#include "testing/real_checkpoints.h"

#include <gtest/gtest.h>

#include "model/checkpoint.h"
#include "model/config.h"
#include "model/memory_plan.h"
#include "model/weights_manifest.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

struct Totals {
  const char* name;
  testing::RealCheckpoint (*make)();
  int64_t tensors;   // as published
  int64_t elements;  // as published, scales included; 0: no figure
  double gigabytes;  // as published, to 0.1
  int64_t mtp_tensors;
  int64_t ignored_tensors;
};

void PrintTo(const Totals& totals, std::ostream* out) { *out << totals.name; }

class RealCheckpoints : public ::testing::TestWithParam<Totals> {};

TEST_P(RealCheckpoints, EveryTensorIsCounted) {
  const Totals& totals = GetParam();
  const testing::RealCheckpoint real = totals.make();
  ASSERT_EQ(static_cast<int64_t>(real.tensors.size()), totals.tensors);
  if (totals.elements != 0) {
    EXPECT_EQ(real.elements(), totals.elements);
  }
  EXPECT_NEAR(static_cast<double>(real.bytes()) / 1e9, totals.gigabytes, 0.1);

  testing::TempFolder folder;
  real.write_sparse(folder.path());
  const Checkpoint checkpoint(folder.path());
  EXPECT_EQ(static_cast<int64_t>(checkpoint.tensors().size()), totals.tensors);
  EXPECT_EQ(checkpoint.num_files(), real.num_shards);
  EXPECT_EQ(checkpoint.total_bytes(), real.bytes());
  int64_t elements = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) elements += tensor.entry->elements();
  EXPECT_EQ(elements, real.elements());

  const ModelConfig config = load_config(folder.path());
  ModelWeights shapes;
  const std::vector<WeightSlot> slots = make_slots(config, shapes);
  const WeightInventory inventory = check_tensors(config, checkpoint, slots);
  EXPECT_TRUE(inventory.unknown.empty());
  EXPECT_EQ(inventory[WeightPart::kMtp].tensors, totals.mtp_tensors);
  EXPECT_EQ(inventory[WeightPart::kIgnored].tensors, totals.ignored_tensors);
  int64_t counted = 0;
  for (const WeightInventory::Part& part : inventory.parts) counted += part.tensors;
  EXPECT_EQ(counted, totals.tensors);
  // Eight ranks split every one of them on whole scale blocks.
  EXPECT_LT(planned_weight_bytes(slots, checkpoint, 8, false), real.bytes() / 5);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    RealCheckpoints,
    ::testing::Values(
        Totals{"DeepSeek-V3.2", testing::deepseek_v32, 92425, 685'396'921'376, 689.47, 1571, 0},
        Totals{"GLM-5.2-FP8", testing::glm52_fp8, 118629, 0, 755.6, 1569, 0},
        Totals{"GLM-5.1", testing::glm51_bf16, 59870, 753'864'139'008, 1507.7, 791, 0},
        Totals{"Kimi-K2", testing::kimi_k2, 139644, 1'026'470'731'056, 1029.2, 0, 61}),
    [](const auto& info) {
      std::string name;
      for (const char* c = info.param.name; *c != '\0'; ++c) {
        if (std::isalnum(static_cast<unsigned char>(*c)) != 0) name.push_back(*c);
      }
      return name;
    });

}  // namespace
}  // namespace winnow::model
