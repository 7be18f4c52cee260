// Fault B76: a damaged shard must be refused by name, never read.
#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/mapped_file.h"
#include "testing/checkpoint_editor.h"
#include "testing/errors.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using testing::error_of;
using testing::expect_says;
using testing::safetensors_bytes;

class Safetensors : public ::testing::Test {
 protected:
  // What opening a file of these bytes says.
  std::string refusal(std::string_view bytes) {
    const std::string path = folder_.write("shard.safetensors", bytes);
    return error_of([&] { SafetensorsFile file(path); });
  }
  std::string header_refusal(std::string_view header, std::string_view data = "01234567") {
    return refusal(safetensors_bytes(header, data));
  }

  testing::TempFolder folder_;
};

TEST_F(Safetensors, ReadsWhatItWasGiven) {
  const std::string path = folder_.write(
      "a.safetensors",
      safetensors_bytes(R"({"__metadata__":{"format":"pt"},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]},)"
                        R"("a":{"dtype":"F8_E4M3","shape":[2,1],"data_offsets":[0,2]},)"
                        R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[2,2]},)"
                        R"("flags":{"dtype":"BOOL","shape":[2],"data_offsets":[6,8]}}   )",
                        "xyABCD01"));
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].dtype, DType::kE4m3);
  EXPECT_EQ(file.tensors()[1].name, "none");
  EXPECT_EQ(file.tensors()[1].elements(), 0);
  EXPECT_EQ(file.tensors()[2].name, "b");
  EXPECT_EQ(0, std::memcmp(file.data(file.tensors()[2]), "ABCD", 4));
  EXPECT_EQ(file.tensors()[3].dtype, std::nullopt);
  EXPECT_EQ(file.tensors()[3].dtype_name, "BOOL");
}

TEST_F(Safetensors, CutFileNamesTheTensorBeyondIt) {
  const std::string whole = read_file(testing::data_path("tiny_glm/model.safetensors"));
  const SafetensorsFile good(testing::data_path("tiny_glm/model.safetensors"));
  const TensorEntry& last = good.tensors().back();
  expect_says(refusal(whole.substr(0, whole.size() - 1)),
              {"shard.safetensors", last.name.c_str(), "truncated"});
  expect_says(refusal(whole.substr(0, whole.size() - static_cast<size_t>(last.bytes()))),
              {"shard.safetensors", last.name.c_str(), "truncated"});
  expect_says(refusal(whole + "x"), {"shard.safetensors", "1 bytes behind the last tensor"});
}

TEST_F(Safetensors, BadHeaderLength) {
  const std::string whole = read_file(testing::data_path("tiny_glm/model.safetensors"));
  auto with_length = [&](uint64_t length) {
    std::string bytes = whole;
    std::memcpy(bytes.data(), &length, 8);
    return refusal(bytes);
  };
  expect_says(with_length(0), {"shard.safetensors", "header of 0 bytes"});
  expect_says(with_length(whole.size() - 7), {"shard.safetensors", "beyond the file"});
  expect_says(with_length(uint64_t{1} << 63), {"shard.safetensors", "beyond the file"});
  expect_says(with_length(~uint64_t{0}), {"shard.safetensors", "beyond the file"});
  expect_says(refusal(""), {"shard.safetensors", "too few"});
  expect_says(refusal("1234567"), {"shard.safetensors", "too few"});
  // A broken upload: the right size, all zeros.
  expect_says(refusal(std::string(4096, '\0')), {"shard.safetensors", "header of 0 bytes"});
}

TEST_F(Safetensors, BadHeaderText) {
  expect_says(header_refusal("[1, 2]"), {"shard.safetensors", "'{'"});
  expect_says(header_refusal(R"({"a":)"), {"shard.safetensors", "JSON"});
  expect_says(header_refusal("{\"a\":{\"dtype\":\"F\xff\"}}"), {"shard.safetensors", "UTF-8"});
  expect_says(header_refusal(R"({"a":7})"), {"tensor a", "no dtype"});
  expect_says(header_refusal(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})"),
              {"tensor a", "no shape"});
  expect_says(header_refusal(R"({"a":{"dtype":"F32","shape":[2]}})"), {"tensor a", "data_offsets"});
  expect_says(header_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})"),
              {"tensor a", "data_offsets"});
  expect_says(header_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":["0",8]}})"),
              {"tensor a", "data_offsets"});
  expect_says(header_refusal(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
              {"tensor a", "bad shape"});
  expect_says(header_refusal(R"({"a":{"dtype":"F8_E9","shape":[8],"data_offsets":[0,8]}})"),
              {"tensor a", "F8_E9"});
  expect_says(header_refusal(R"({"twice":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("twice":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})"),
              {"shard.safetensors", "twice"});
}

TEST_F(Safetensors, BadOffsets) {
  auto one = [&](const char* shape, const char* offsets) {
    return header_refusal(
        fmt::format(R"({{"a":{{"dtype":"U8","shape":{},"data_offsets":{}}}}})", shape, offsets));
  };
  expect_says(one("[8]", "[8,0]"), {"tensor a", "reversed"});
  expect_says(one("[8]", "[-8,0]"), {"tensor a", "reversed"});
  expect_says(one("[9]", "[0,9]"), {"tensor a", "holds 8"});
  expect_says(one("[7]", "[0,8]"), {"tensor a", "[7] does not match its 8 bytes"});
  // The product of the shape leaves 64 bits: 2^32 * 2^32 = 0 bytes if it wrapped.
  expect_says(one("[4294967296,4294967296]", "[0,0]"), {"tensor a", "does not match"});
  expect_says(one("[7]", "[1,8]"), {"tensor a", "1 unused bytes before"});
  expect_says(one("[7]", "[0,7]"), {"1 bytes behind the last tensor a"});
}

TEST_F(Safetensors, OverlapsAndGapsBetweenTensors) {
  auto two = [&](const char* first, const char* second, int first_size, int second_size) {
    return header_refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":{}}},)"
                                      R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":{}}}}})",
                                      first_size, first, second_size, second));
  };
  expect_says(two("[0,5]", "[4,8]", 5, 4), {"tensor b overlaps tensor a"});
  expect_says(two("[0,8]", "[0,8]", 8, 8), {"overlaps"});
  expect_says(two("[0,3]", "[4,8]", 3, 4), {"1 unused bytes before tensor b"});
}

TEST_F(Safetensors, FileThatIsNone) {
  expect_says(error_of([&] { SafetensorsFile file(folder_.file("absent")); }),
              {"absent", "No such file"});
  expect_says(error_of([&] { SafetensorsFile file(folder_.path()); }), {"directory"});
}

}  // namespace
}  // namespace winnow::model
