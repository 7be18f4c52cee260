// Prompts, to the byte, of every family that we serve.
#include <gtest/gtest.h>

#include "testing/chat_formats.h"

namespace winnow::text {
namespace {

using testing::render;

constexpr const char* kHello =
    R"({"messages": [{"role": "system", "content": "You are helpful."},
                     {"role": "user", "content": "Hi"}])";
constexpr const char* kThreeTurns =
    R"({"messages": [{"role": "user", "content": "2+2?"},
                     {"role": "assistant", "content": "4", "reasoning_content": "easy"},
                     {"role": "user", "content": "3+3?"}])";
constexpr const char* kToolRound =
    R"({"messages": [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": null, "reasoning_content": "need tool", "tool_calls": [
      {"id": "functions.get_weather:0", "type": "function",
       "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\", \"days\": 2}"}},
      {"id": "functions.get_weather:1", "type": "function",
       "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}]},
    {"role": "tool", "tool_call_id": "functions.get_weather:0", "content": "sunny"},
    {"role": "tool", "tool_call_id": "functions.get_weather:1", "content": "rain"}],
  "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Get weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"},
                   "days": {"type": "integer"}}, "required": ["city"]}}}])";

std::string with(const char* request, const std::string& members) {
  return std::string(request) + (members.empty() ? "" : ", " + members) + "}";
}

constexpr const char* kWeatherFunction =
    R"({"name": "get_weather", "description": "Get weather", "parameters": {"type": "object", )"
    R"("properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, )"
    R"("required": ["city"]}})";

std::string glm_tools(const std::string& tool_line) {
  return "<|system|>\n# Tools\n\nYou may call one or more functions to assist with the user query."
         "\n\nYou are provided with function signatures within <tools></tools> XML "
         "tags:\n<tools>\n" +
         tool_line +
         "\n</tools>\n\nFor each function call, output the function name and arguments within the "
         "following XML format:\n<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key>"
         "<arg_value>{arg-value-1}</arg_value><arg_key>{arg-key-2}</arg_key>"
         "<arg_value>{arg-value-2}</arg_value>...</tool_call>";
}

constexpr const char* kGlmToolRound =
    "<|user|>Weather?<|assistant|><think>need tool</think><tool_call>get_weather"
    "<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key>"
    "<arg_value>2</arg_value></tool_call><tool_call>get_weather<arg_key>city</arg_key>"
    "<arg_value>Rome</arg_value></tool_call><|observation|><tool_response>sunny</tool_response>"
    "<tool_response>rain</tool_response><|assistant|><think>";

TEST(ChatGolden, Glm5) {
  EXPECT_EQ(render("glm5", with(kHello, "")),
            "[gMASK]<sop><|system|>You are helpful.<|user|>Hi<|assistant|><think>");
  EXPECT_EQ(render("glm5", with(kHello, R"("enable_thinking": false)")),
            "[gMASK]<sop><|system|>You are helpful.<|user|>Hi<|assistant|></think>");
  EXPECT_EQ(render("glm5", with(kThreeTurns, "")),
            "[gMASK]<sop><|user|>2+2?<|assistant|></think>4<|user|>3+3?<|assistant|><think>");
  EXPECT_EQ(render("glm5", with(kThreeTurns, R"("clear_thinking": false)")),
            "[gMASK]<sop><|user|>2+2?<|assistant|><think>easy</think>4<|user|>3+3?<|assistant|>"
            "<think>");
  const std::string line =
      std::string(R"({"type": "function", "function": )") + kWeatherFunction + "}";
  EXPECT_EQ(render("glm5", with(kToolRound, "")), "[gMASK]<sop>" + glm_tools(line) + kGlmToolRound);
}

TEST(ChatGolden, Glm52) {
  EXPECT_EQ(render("glm52", with(kHello, "")),
            "[gMASK]<sop><|system|>Reasoning Effort: Max<|system|>You are helpful.<|user|>Hi"
            "<|assistant|><think>");
  EXPECT_EQ(render("glm52", with(kHello, R"("reasoning_effort": "high")")),
            "[gMASK]<sop><|system|>Reasoning Effort: High<|system|>You are helpful.<|user|>Hi"
            "<|assistant|><think>");
  EXPECT_EQ(render("glm52", with(kHello, R"("enable_thinking": false)")),
            "[gMASK]<sop><|system|>You are helpful.<|user|>Hi<|assistant|><think></think>");
  EXPECT_EQ(render("glm52", with(kThreeTurns, "")),
            "[gMASK]<sop><|system|>Reasoning Effort: Max<|user|>2+2?<|assistant|><think></think>4"
            "<|user|>3+3?<|assistant|><think>");
  EXPECT_EQ(render("glm52", with(kToolRound, "")), "[gMASK]<sop><|system|>Reasoning Effort: Max" +
                                                       glm_tools(kWeatherFunction) + kGlmToolRound);
}

const std::string kDsmlTools =
    R"(## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
)" + std::string(kWeatherFunction) +
    "\n</functions>\n";

const std::string kBos = "<｜begin▁of▁sentence｜>";
const std::string kEos = "<｜end▁of▁sentence｜>";
const std::string kDsmlCalls =
    R"(

<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>)" +
    kEos;
const std::string kDsmlResults =
    "\n\n<function_results>\n<result>sunny</result>\n<result>rain</result>\n</function_results>"
    "\n\n";

// Fault B92.
TEST(ChatGolden, DeepseekV32) {
  EXPECT_EQ(render("deepseek_v32", with(kHello, R"("thinking": true)")),
            kBos + "You are helpful.<｜User｜>Hi<｜Assistant｜><think>");
  for (const char* chat : {R"("thinking": false)", "", R"("unknown": 1)"}) {
    EXPECT_EQ(render("deepseek_v32", with(kHello, chat)),
              kBos + "You are helpful.<｜User｜>Hi<｜Assistant｜></think>");
  }
  for (const char* drop : {R"("thinking": true)", R"("thinking": true, "drop_thinking": false)"}) {
    EXPECT_EQ(render("deepseek_v32", with(kThreeTurns, drop)),
              kBos + "<｜User｜>2+2?<｜Assistant｜></think>4" + kEos +
                  "<｜User｜>3+3?<｜Assistant｜><think>");
  }
  EXPECT_EQ(render("deepseek_v32", with(kToolRound, R"("enable_thinking": true)")),
            kBos + "\n\n" + kDsmlTools +
                "<｜User｜>Weather?<｜Assistant｜><think>need tool</think>" + kDsmlCalls +
                kDsmlResults + "<think>");
  EXPECT_EQ(render("deepseek_v32", with(kToolRound, "")),
            kBos + "\n\n" + kDsmlTools + "<｜User｜>Weather?<｜Assistant｜></think>" + kDsmlCalls +
                kDsmlResults + "</think>");
}

TEST(ChatGolden, DeepseekV32ToolsBelongToTheSystemMessage) {
  EXPECT_EQ(
      render("deepseek_v32", with(R"({"messages": [{"role": "system", "content": "Be brief.",
                                    "response_format": {"type": "object", "é": 1.0}},
                                   {"role": "user", "content": "Hi"}])",
                                  std::string(R"("tools": [{"type": "function", "function": )") +
                                      kWeatherFunction + "}]")),
      kBos + "Be brief.\n\n" + kDsmlTools +
          "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
          R"({"type": "object", "é": 1.0}<｜User｜>Hi<｜Assistant｜></think>)");
}

TEST(ChatGolden, DeepseekV32DeveloperMessages) {
  constexpr const char* kRequest =
      R"({"messages": [{"role": "developer", "content": "Old."},
                       {"role": "assistant", "content": "Yes."},
                       {"role": "developer", "content": "New."}])";
  const std::string last = "<｜User｜>\n\n# The user's message is: New.<｜Assistant｜>";
  EXPECT_EQ(render("deepseek_v32", with(kRequest, "")),
            kBos + "<｜User｜>\n\n# The user's message is: Old.<｜Assistant｜></think>Yes." + kEos +
                last + "</think>");
  EXPECT_EQ(render("deepseek_v32", with(kRequest, R"("thinking": true)")),
            kBos + "Yes." + kEos + last + "<think>");
  EXPECT_EQ(render("deepseek_v32", with(kRequest, R"("thinking": true, "drop_thinking": false)")),
            kBos + "<｜User｜>\n\n# The user's message is: Old.<｜Assistant｜></think>Yes." + kEos +
                last + "<think>");
}

TEST(ChatGolden, DeepseekV32EndsOfTheConversation) {
  constexpr const char* kAnswered =
      R"({"messages": [{"role": "user", "content": "Hi"},
                       {"role": "assistant", "content": "Hello", "prefix": true}])";
  EXPECT_EQ(render("deepseek_v32", with(kAnswered, R"("add_generation_prompt": false)")),
            kBos + "<｜User｜>Hi<｜Assistant｜></think>Hello");
  EXPECT_EQ(render("deepseek_v32", with(kHello, R"("add_generation_prompt": false)")),
            kBos + "You are helpful.<｜User｜>Hi");
  EXPECT_EQ(render("deepseek_v32",
                   R"({"messages": [{"role": "user", "content": "Hi"},
                                    {"role": "assistant", "content": "Hello"}]})"),
            kBos + "<｜User｜>Hi<｜Assistant｜></think>Hello" + kEos + "<｜Assistant｜></think>");
}

TEST(ChatGolden, DeepseekV32RefusesWhatItCannotEncode) {
  auto error = [](const char* request) { return render("deepseek_v32", request).substr(0, 20); };
  EXPECT_EQ(error(R"({"messages": [{"role": "tool", "content": "x"}]})"), "error: messages[0]: ");
  EXPECT_EQ(error(R"({"messages": [{"role": "user", "content": "x"},
                                   {"role": "assistant", "content": "y"}], "thinking": true})"),
            "error: messages[1]: ");
  EXPECT_EQ(error(R"({"messages": [{"role": "developer", "content": ""}]})"),
            "error: messages[0]: ");
  EXPECT_EQ(error(R"({"messages": [{"role": "assistant", "tool_calls": [
                  {"function": {"name": "f"}}, {"function": {"name": "g"}}]},
                {"role": "tool", "content": "x"}, {"role": "user", "content": "y"}]})"),
            "error: messages[1]: ");
}

TEST(ChatGolden, DeepseekV31) {
  constexpr const char* kHi = R"({"messages": [{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(render("deepseek_v31", with(kHi, "")), kBos + "<｜User｜>Hi<｜Assistant｜></think>");
  EXPECT_EQ(render("deepseek_v31", with(kHi, R"("thinking": true)")),
            kBos + "<｜User｜>Hi<｜Assistant｜><think>");
  EXPECT_EQ(render("deepseek_v31", with(kThreeTurns, "")),
            kBos + "<｜User｜>2+2?<｜Assistant｜></think>4" + kEos +
                "<｜User｜>3+3?<｜Assistant｜></think>");
  EXPECT_EQ(render("deepseek_v31", R"({"messages": [
        {"role": "system", "content": "A"}, {"role": "system", "content": "B"},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": null, "tool_calls": [
          {"function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]},
        {"role": "tool", "content": "sunny"}]})"),
            kBos +
                "A\n\nB<｜User｜>Weather?<｜Assistant｜></think><｜tool▁calls▁begin｜>"
                "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}"
                "<｜tool▁call▁end｜><｜tool▁calls▁end｜>" +
                kEos + "<｜tool▁output▁begin｜>sunny<｜tool▁output▁end｜>");
}

TEST(ChatGolden, KimiK2) {
  constexpr const char* kTurn = "<|im_assistant|>assistant<|im_middle|>";
  EXPECT_EQ(render("kimi_k2", with(kHello, "")),
            std::string("<|im_system|>system<|im_middle|>You are helpful.<|im_end|><|im_user|>user"
                        "<|im_middle|>Hi<|im_end|>") +
                kTurn);
  const std::string own_system =
      "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI."
      "<|im_end|>";
  EXPECT_EQ(render("kimi_k2", R"({"messages": [{"role": "user", "content": "Hi"}]})"),
            own_system + "<|im_user|>user<|im_middle|>Hi<|im_end|>" + kTurn);
  EXPECT_EQ(render("kimi_k2", with(kThreeTurns, "")),
            own_system + "<|im_user|>user<|im_middle|>2+2?<|im_end|>" + kTurn +
                "<think></think>4<|im_end|><|im_user|>user<|im_middle|>3+3?<|im_end|>" + kTurn);
  EXPECT_EQ(
      render("kimi_k2", with(kToolRound, "")),
      R"(<|im_system|>tool_declare<|im_middle|>[{"type":"function","function":{"name":)"
      R"("get_weather","description":"Get weather","parameters":{"type":"object","properties":)"
      R"({"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}}]<|im_end|>)" +
          own_system + "<|im_user|>user<|im_middle|>Weather?<|im_end|>" + kTurn +
          "<think>need tool</think><|tool_calls_section_begin|><|tool_call_begin|>"
          "functions.get_weather:0<|tool_call_argument_begin|>{\"city\": \"Paris\", \"days\": 2}"
          "<|tool_call_end|><|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>"
          "{\"city\": \"Rome\"}<|tool_call_end|><|tool_calls_section_end|><|im_end|><|im_system|>"
          "tool<|im_middle|>## Return of functions.get_weather:0\nsunny<|im_end|><|im_system|>tool"
          "<|im_middle|>## Return of functions.get_weather:1\nrain<|im_end|>" +
          kTurn);
}

}  // namespace
}  // namespace winnow::text
