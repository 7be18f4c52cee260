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

TEST(Json, NamesTheNumberOrStringThatIsBad) {
  struct Case {
    const char* text;
    const char* param;
    const char* message;
  };
  const Case cases[] = {
      {R"({"seed":36893488147419103232})", "seed",
       "seed is 36893488147419103232, beyond 64 signed bits"},
      {R"({"a":"x,]}\"","seed":-9223372036854775809})", "seed", "beyond 64 signed bits"},
      {R"({"a":{"b":[0.5,1,{},[],1e400]},"c":2})", "a.b[4]",
       "a.b[4] is 1e400, beyond the range of doubles"},
      {R"({"a":[{"x":1},{"y" : 01}]})", "a[1].y", "a[1].y is 01, no JSON number"},
      {R"({"a":1,"t":-1.})", "t", "t is -1., no JSON number"},
      {R"({"a":"\n","b":{"t":"\ud800"}})", "b.t", "half of a surrogate pair"},
      {R"({"a":{"\x":1}})", "a.\\x", "is a key with a bad escape"},
      {"36893488147419103232", "", "the value is 36893488147419103232"},
  };
  for (const auto& [text, param, message] : cases) {
    const auto result = parse(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().param, param) << text;
    EXPECT_NE(result.status().message.find(message), std::string::npos) << result.status().message;
  }
  const auto digits = parse("[" + std::string(100'000, '9') + "]");
  EXPECT_LT(digits.status().message.size(), 100u);
}

TEST(Json, BoundsDepth) {
  EXPECT_TRUE(parse(std::string(100, '[') + std::string(100, ']')).ok());
  EXPECT_FALSE(parse(std::string(100'000, '[') + std::string(100'000, ']')).ok());
}

}  // namespace
}  // namespace winnow::json
