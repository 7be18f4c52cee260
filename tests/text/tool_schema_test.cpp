#include "text/tool_schema.h"

#include <gtest/gtest.h>

namespace winnow::text {
namespace {

Status check(std::string_view schema) {
  const auto value = json::parse(schema);
  EXPECT_TRUE(value.ok()) << schema;
  return check_tool_schema(value.value(), "p");
}

TEST(ToolSchema, TakesWhatClientsSend) {
  for (const char* schema : {
           R"({})",
           R"({"type":"object","properties":{},"required":[],"description":null})",
           R"({"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",1,null]},
               "b":{"type":"array","items":{"$ref":"#/$defs/B"}},"c":true},
               "required":["a"],"additionalProperties":false,"$defs":{"B":{"type":"int"}}})",
           R"({"anyOf":[{"type":"object"},{"type":"null"}],"minItems":2.0,"default":[1]})",
           R"({"items":[],"x-mine":5,"properties":{"type":{"type":"string"},"required":{}}})",
           R"({"items":[{"type":"string"}],"dependentRequired":{"a":["b"]}})",
       }) {
    const Status status = check(schema);
    EXPECT_TRUE(status.ok()) << schema << status.message;
  }
}

TEST(ToolSchema, NamesTheKeywordOfTheWrongKind) {
  struct Case {
    const char* schema;
    const char* param;
    const char* message;
  };
  const Case cases[] = {
      {"[]", "p", "p must be an object, not array"},
      {"true", "p", "p must be an object"},
      {R"({"type":5})", "p.type", "a string or an array of strings, not integer"},
      {R"({"type":[]})", "p.type", "must not be empty"},
      {R"({"type":["a",5]})", "p.type[1]", "must be a string, not integer"},
      {R"({"properties":[]})", "p.properties", "must be an object, not array"},
      {R"({"properties":{"a":"string"}})", "p.properties.a", "must be an object, not string"},
      {R"({"properties":{"a":{"required":true}}})", "p.properties.a.required", "array of strings"},
      {R"({"required":["a",1]})", "p.required[1]", "must be a string"},
      {R"({"enum":"a"})", "p.enum", "must be an array"},
      {R"({"properties":{"a":{"items":{"enum":{}}}}})", "p.properties.a.items.enum", "an array"},
      {R"({"anyOf":[{},{"type":{}}]})", "p.anyOf[1].type", "a string"},
      {R"({"anyOf":{}})", "p.anyOf", "an array of schemas"},
      {R"({"$defs":{"x":{"minLength":-1}}})", "p.$defs.x.minLength", "at least 0"},
      {R"({"minLength":1.5})", "p.minLength", "a whole number"},
      {R"({"uniqueItems":"yes"})", "p.uniqueItems", "true or false"},
      {R"({"not":1})", "p.not", "must be an object"},
      {R"({"dependentRequired":{"a":"b"}})", "p.dependentRequired.a", "an array of strings"},
  };
  for (const auto& [schema, param, message] : cases) {
    const Status status = check(schema);
    EXPECT_EQ(status.param, param) << schema;
    EXPECT_NE(status.message.find(message), std::string::npos) << status.message;
  }
}

}  // namespace
}  // namespace winnow::text
