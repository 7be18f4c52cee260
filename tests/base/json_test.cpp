#include "base/json.h"

#include <gtest/gtest.h>

namespace winnow::json {
namespace {

Value must_parse(std::string_view text) {
  auto result = parse(text);
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? result.value() : Value();
}

TEST(Json, KeepsKeyOrderAndPrintsInBothStyles) {
  Value v = must_parse(R"({"b":1,"a":[true,null,1.5,"x\n"],"c":{}})");
  EXPECT_EQ(dump(v), R"({"b":1,"a":[true,null,1.5,"x\n"],"c":{}})");
  EXPECT_EQ(dump(v, Style::kPython), R"({"b": 1, "a": [true, null, 1.5, "x\n"], "c": {}})");
}

TEST(Json, DoublesPrintAsPythonDoes) {
  EXPECT_EQ(dump(must_parse("[1.0,0.7,1e22,-0.0]")), "[1.0,0.7,1e+22,-0.0]");
  EXPECT_EQ(dump(must_parse("[1e5,123456789012345.0,1e15,1e16,0.0001,0.00001,1.5e300,5e-324]")),
            "[100000.0,123456789012345.0,1000000000000000.0,1e+16,0.0001,1e-05,1.5e+300,5e-324]");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "{\"a\":1,}", "[NaN]", "[Infinity]", "{\"a\":1} x", "\"\xff\"",
                           "[18446744073709551615]", "'a'"}) {
    EXPECT_FALSE(parse(text).ok()) << text;
  }
}

TEST(Json, NamesADuplicateKeyInSmallAndLargeObjects) {
  EXPECT_EQ(parse(R"({"a":1,"a":2})").status().param, "a");
  std::string large = "{";
  for (int i = 0; i < 100; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  large += "\"k50\":1}";
  EXPECT_EQ(parse(large).status().param, "k50");
}

TEST(Json, BoundsDepth) {
  EXPECT_TRUE(parse(std::string(100, '[') + std::string(100, ']')).ok());
  EXPECT_FALSE(parse(std::string(100'000, '[') + std::string(100'000, ']')).ok());
}

}  // namespace
}  // namespace winnow::json
