#include "text/tool_call_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/tool_arguments.h"

namespace winnow::text {
namespace {

const json::Value& tools() {
  static const json::Value value = json::parse(R"([
    {"type":"function","function":{"name":"set","parameters":{"type":"object",
     "$defs":{"level":{"type":"integer"}},
     "properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},
       "b":{"type":"boolean"},"a":{"type":"array"},"o":{"type":"object"},"z":{"type":"null"},
       "si":{"type":["string","integer"]},"any":{"anyOf":[{"type":"number"},{"type":"null"}]},
       "e":{"enum":["low","high"]},"ref":{"$ref":"#/$defs/level"},"free":{}}}}},
    {"type":"function","function":{"name":"list_rooms"}}])")
                                       .value();
  return value;
}

// "content[name arguments][name arguments]" of the text in pieces of these sizes; the last repeats.
std::string split(std::string_view text, const std::vector<size_t>& sizes) {
  const auto parser = make_tool_call_parser("glm47", tools());
  std::string content;
  std::vector<ToolCallDelta> calls;
  const auto add = [&](const ToolCallDeltas& deltas) {
    content += deltas.content;
    for (const ToolCallDelta& call : deltas.calls) {
      if (!call.name.empty()) {
        EXPECT_EQ(static_cast<size_t>(call.idx), calls.size());
        calls.push_back(call);
      } else {
        EXPECT_EQ(static_cast<size_t>(call.idx) + 1, calls.size());
        EXPECT_FALSE(call.arguments.empty());
        calls.back().arguments += call.arguments;
      }
    }
  };
  size_t i = 0;
  while (!text.empty()) {
    const size_t n =
        std::min(text.size(), std::max<size_t>(sizes[std::min(i++, sizes.size() - 1)], 1));
    add(parser->append(text.substr(0, n)));
    text.remove_prefix(n);
  }
  add(parser->finish());
  std::string all = content;
  for (const ToolCallDelta& call : calls) all += "[" + call.name + " " + call.arguments + "]";
  return all;
}

// Faults B97 and B99: any cut gives the same.
std::string split(std::string_view text) {
  const std::string whole = split(text, {text.size() + 1});
  for (size_t step = 1; step <= 8; ++step) EXPECT_EQ(split(text, {step}), whole) << step;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(split(text, {cut, text.size()}), whole) << "cut at " << cut;
  }
  return whole;
}

std::string set(std::string_view key, std::string_view value) {
  const std::string text = fmt::format(
      "<tool_call>set<arg_key>{}</arg_key><arg_value>{}</arg_value></tool_call>", key, value);
  const std::string whole = split(text);
  const std::string head = "[set ";
  EXPECT_TRUE(whole.starts_with(head) && whole.ends_with("]")) << whole;
  const std::string arguments = whole.substr(head.size(), whole.size() - head.size() - 1);
  const auto parsed = json::parse(arguments);
  EXPECT_TRUE(parsed.ok()) << arguments;
  const json::Value* found = parsed.ok() ? parsed.value().find(key) : nullptr;
  return found == nullptr ? "missing" : json::dump(*found);
}

TEST(ToolCallParser, ContentAndCalls) {
  EXPECT_EQ(split("Just text."), "Just text.");
  EXPECT_EQ(split(" two\n\nlines \n"), " two\n\nlines \n");
  EXPECT_EQ(split("a < b <tool > </tool_ca"), "a < b <tool > </tool_ca");
  EXPECT_EQ(
      split("I look.\n<tool_call>set<arg_key>s</arg_key><arg_value>x</arg_value></tool_call>"),
      "I look.[set {\"s\": \"x\"}]");
  EXPECT_EQ(split("\n<tool_call>set\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>\n<arg_key>i"
                  "</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"),
            "[set {\"s\": \"x\", \"i\": 3}]");
  EXPECT_EQ(split("<tool_call>set\\n<arg_key>i</arg_key><arg_value>1</arg_value></tool_call>"
                  "<tool_call>list_rooms</tool_call>\n\nboth asked"),
            "both asked[set {\"i\": 1}][list_rooms {}]");
  EXPECT_EQ(split("x</tool_call> y"), "x y");
  EXPECT_EQ(split("<tool_call>unknown<arg_key>k</arg_key><arg_value>7</arg_value></tool_call>"),
            "[unknown {\"k\": 7}]");
}

// Fault B95.
TEST(ToolCallParser, CallsWithoutArguments) {
  for (const char* name : {"list_rooms", "list_rooms\n", " list_rooms ", "\nlist_rooms\n\n"}) {
    const std::string call = fmt::format("<tool_call>{}</tool_call>", name);
    EXPECT_EQ(split(call), "[list_rooms {}]");
    EXPECT_EQ(split(call + call), "[list_rooms {}][list_rooms {}]");
    EXPECT_EQ(split(call + "\n" + call + "\n"), "[list_rooms {}][list_rooms {}]");
  }
  EXPECT_EQ(split("<tool_call>list_rooms"), "<tool_call>list_rooms");
  EXPECT_EQ(split("ok <tool_call>list_rooms</tool_cal"), "ok <tool_call>list_rooms</tool_cal");
}

TEST(ToolCallParser, WhatIsNotWellFormed) {
  EXPECT_EQ(split("<tool_call></tool_call>x"), "<tool_call></tool_call>x");
  EXPECT_EQ(split("<tool_call> <tool_call>list_rooms</tool_call>"), "<tool_call> [list_rooms {}]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i</arg_key></tool_call>"), "[set {}]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i</arg_key><arg_key>n</arg_key><arg_value>2</arg_value>"
                  "</tool_call>"),
            "[set {\"n\": 2}]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i</arg_key><arg_value>2</arg_value>"
                  "<tool_call>list_rooms</tool_call>"),
            "[set {\"i\": 2}][list_rooms {}]");
}

// Cut off by the length limit: never more than what came.
TEST(ToolCallParser, ACallThatEndsInTheMiddle) {
  EXPECT_EQ(split("<tool_call>set<arg_key>s</arg_key><arg_value>half a sen"),
            "[set {\"s\": \"half a sen]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i</arg_key><arg_value>12"), "[set {\"i\": ]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i</arg_key><arg_value>12</arg_value>"),
            "[set {\"i\": 12]");
  EXPECT_EQ(split("<tool_call>set<arg_key>i"), "[set ]");
}

// Fault B97.
TEST(ToolCallParser, ValuesHaveTheTypeOfTheirSchema) {
  for (const char* text : {"001", "40", "true", "1e5", "NaN", "[1,", "{\"k\":{}}", "null", "",
                           "a \"quoted\" \\ word\n\ttab", "</arg_key>", "<arg_value>", "\"q\"",
                           " kept blanks ", "日本語 🙂"}) {
    std::string wanted;
    json::append_string(wanted, text);
    EXPECT_EQ(set("s", text), wanted);
    EXPECT_EQ(set("e", text), wanted);
  }
  EXPECT_EQ(set("i", "40"), "40");
  EXPECT_EQ(set("i", " 40\n"), "40");
  EXPECT_EQ(set("i", "\"40\""), "40");
  EXPECT_EQ(set("i", "1.5"), "\"1.5\"");
  EXPECT_EQ(set("i", "001"), "\"001\"");
  EXPECT_EQ(set("ref", "7"), "7");
  EXPECT_EQ(set("n", "1e5"), "100000.0");
  EXPECT_EQ(set("n", "\"2.5\""), "2.5");
  EXPECT_EQ(set("n", "NaN"), "\"NaN\"");
  EXPECT_EQ(set("b", "true"), "true");
  EXPECT_EQ(set("b", "True"), "true");
  EXPECT_EQ(set("b", "1"), "\"1\"");
  EXPECT_EQ(set("a", "[1, \"x\"]"), "[1,\"x\"]");
  EXPECT_EQ(set("a", "[1,"), "\"[1,\"");
  EXPECT_EQ(set("o", "{\"k\":{}}"), "{\"k\":{}}");
  EXPECT_EQ(set("z", "None"), "null");
  EXPECT_EQ(set("si", "12"), "12");
  EXPECT_EQ(set("si", "012"), "\"012\"");
  EXPECT_EQ(set("si", "true"), "\"true\"");
  EXPECT_EQ(set("any", "null"), "null");
  EXPECT_EQ(set("any", "3.5"), "3.5");
  EXPECT_EQ(set("free", "3.5"), "3.5");
  EXPECT_EQ(set("free", "plain words"), "\"plain words\"");
  EXPECT_EQ(set("other", "{\"a\":1}"), "{\"a\":1}");
  EXPECT_EQ(set("s", std::string(10'000, 'x')).size(), 10'002u);
}

// A value of no bytes, from nowhere.
TEST(ToolArguments, AnEmptyValueIsAnEmptyString) {
  EXPECT_EQ(argument_json({}, kIntegerKind), "\"\"");
  EXPECT_FALSE(json::parse({}).ok());
}

TEST(ToolArguments, SchemasThatGoRoundOrContradictThemselvesAdmitAnything) {
  const auto kinds = [](const char* schema) {
    const auto parameters =
        json::parse(
            fmt::format(R"({{"properties":{{"k":{}}},"$defs":{{"r":{{"$ref":"#/$defs/r"}}}}}})",
                        schema))
            .value();
    return argument_kinds(&parameters, "k");
  };
  EXPECT_EQ(kinds(R"({"$ref":"#/$defs/r"})"), kAnyKind);
  EXPECT_EQ(kinds(R"({"$ref":"#/nowhere/x"})"), kAnyKind);
  EXPECT_EQ(kinds(R"({"type":"string","const":3})"), kAnyKind);
  EXPECT_EQ(kinds(R"({"type":"varchar"})"), kAnyKind);
  EXPECT_EQ(kinds(R"({"allOf":[{"type":["string","null"]},{"type":"string"}]})"), kStringKind);
  EXPECT_EQ(kinds(R"({"oneOf":[{"type":"integer"},{"const":null}]})"), kIntegerKind | kNullKind);
  EXPECT_EQ(argument_kinds(nullptr, "k"), kAnyKind);
}

RC_GTEST_PROP(ToolCallParserProperty, AnyCutOfAnythingGivesTheSame, ()) {
  static const std::vector<std::string> kParts{
      "<tool_call>",  "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
      "</arg_value>", "set",          "s",         "i",          " ",
      "\n",           "12",           "text",      "\"",         "<",
      "</",           "🙂",         "list_rooms"};
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts));
  std::string text;
  for (const auto& part : parts) text += part;
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 9)));
  RC_ASSERT(split(text, sizes) == split(text, {text.size() + 1}));
}

TEST(ToolCallParser, Names) {
  EXPECT_EQ(tool_call_parser_names(), (std::vector<std::string>{"glm", "glm45", "glm47"}));
  EXPECT_EQ(make_tool_call_parser("glm4", tools()), nullptr);
}

}  // namespace
}  // namespace winnow::text
