#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/json.h"
#include "testing/checkpoint_editor.h"
#include "testing/errors.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using testing::EditableTensor;
using testing::error_of;
using testing::expect_says;
using Tensors = std::map<std::string, EditableTensor>;

constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";

class ShardedCheckpoint : public ::testing::Test {
 protected:
  void write_shard(const char* name, const Tensors& tensors) {
    folder_.write(name, testing::safetensors_bytes(tensors));
  }
  void write_index(const std::vector<std::pair<std::string, std::string>>& owners) {
    json::Object map;
    for (const auto& [tensor, shard] : owners) map.emplace_back(tensor, shard);
    folder_.write("model.safetensors.index.json",
                  json::dump(json::Object{{"metadata", json::Object{}}, {"weight_map", map}}));
  }
  float value_of(const Checkpoint& checkpoint, const char* name) {
    float value = 0;
    std::memcpy(&value, checkpoint.find(name)->data(), 4);
    return value;
  }
  std::string refusal() {
    return error_of([&] { Checkpoint checkpoint(folder_.path()); });
  }

  testing::TempFolder folder_;
};

// Fault B77: an old copy in another shard and a stray file change nothing.
TEST_F(ShardedCheckpoint, TheIndexSaysWhoOwnsATensor) {
  write_shard(kShard1,
              {{"a", EditableTensor::f32({1}, {1})}, {"b", EditableTensor::f32({1}, {-9})}});
  write_shard(kShard2,
              {{"a", EditableTensor::f32({1}, {-9})}, {"b", EditableTensor::f32({1}, {2})}});
  folder_.write("extra.safetensors",
                testing::safetensors_bytes(Tensors{{"a", EditableTensor::f32({1}, {-9})},
                                                   {"z", EditableTensor::f32({1}, {-9})}}));
  folder_.write("damaged.safetensors", "no safetensors at all");
  write_index({{"a", kShard1}, {"b", kShard2}});
  const Checkpoint checkpoint(folder_.path());
  EXPECT_EQ(value_of(checkpoint, "a"), 1);
  EXPECT_EQ(value_of(checkpoint, "b"), 2);
  EXPECT_EQ(checkpoint.find("z"), nullptr);
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.num_files(), 2);
  EXPECT_EQ(checkpoint.num_disowned(), 2);
  EXPECT_EQ(checkpoint.total_bytes(), 8);
}

TEST_F(ShardedCheckpoint, TheIndexWinsOverASingleFile) {
  write_shard("model.safetensors", {{"a", EditableTensor::f32({1}, {-9})}});
  write_shard(kShard1, {{"a", EditableTensor::f32({1}, {1})}});
  write_index({{"a", kShard1}});
  EXPECT_EQ(value_of(Checkpoint(folder_.path()), "a"), 1);
}

TEST_F(ShardedCheckpoint, MissingShardsAndTensorsAreListed) {
  write_shard(kShard1, {{"a", EditableTensor::f32({1}, {1})}});
  write_index({{"a", kShard1}, {"b", kShard2}, {"c", "third.safetensors"}});
  expect_says(refusal(), {"2 of 3 shards missing", kShard2, "third.safetensors"});

  write_shard(kShard2, {{"b", EditableTensor::f32({1}, {1})}});
  write_index({{"a", kShard1}, {"b", kShard2}, {"c", kShard2}});
  expect_says(refusal(), {kShard2, "c"});
}

TEST_F(ShardedCheckpoint, BadIndex) {
  auto index_refusal = [&](const char* text) {
    folder_.write("model.safetensors.index.json", text);
    return refusal();
  };
  expect_says(index_refusal("{"), {"index.json"});
  expect_says(index_refusal("{}"), {"index.json", "weight_map"});
  expect_says(index_refusal(R"({"weight_map":{}})"), {"index.json", "weight_map"});
  expect_says(index_refusal(R"({"weight_map":{"a":3}})"), {"index.json", "tensor a"});
  expect_says(index_refusal(R"({"weight_map":{"a":"../secret"}})"), {"index.json", "tensor a"});
  expect_says(index_refusal(R"({"weight_map":{"a":""}})"), {"index.json", "tensor a"});
}

TEST_F(ShardedCheckpoint, NothingThere) {
  expect_says(refusal(), {"model.safetensors", "model.safetensors.index.json"});
}

}  // namespace
}  // namespace winnow::model
