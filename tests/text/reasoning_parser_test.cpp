#include "text/reasoning_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "testing/chat_formats.h"

namespace winnow::text {
namespace {

// "reasoning|content" of the text in pieces of these sizes; the last size repeats.
std::string split(std::string_view name,
                  const ReasoningStart& start,
                  std::string_view text,
                  const std::vector<size_t>& sizes) {
  auto parser = make_reasoning_parser(name, start);
  ReasoningDelta total;
  auto add = [&](const ReasoningDelta& delta) {
    const bool begun = total.content.find_first_not_of(" \t\r\n") != std::string::npos;
    EXPECT_TRUE(!begun || delta.reasoning.empty()) << "reasoning behind content";
    total.reasoning += delta.reasoning;
    total.content += delta.content;
  };
  size_t i = 0;
  while (!text.empty()) {
    const size_t n =
        std::min(text.size(), std::max<size_t>(sizes[std::min(i++, sizes.size() - 1)], 1));
    add(parser->append(text.substr(0, n)));
    text.remove_prefix(n);
  }
  add(parser->finish());
  return total.reasoning + "|" + total.content;
}

std::string split(std::string_view name, std::string_view prompt, std::string_view text) {
  const ReasoningStart start{.prompt = prompt};
  const std::string whole = split(name, start, text, {text.size() + 1});
  // Fault B99: any cut gives the same.
  for (size_t step = 1; step <= 8; ++step) EXPECT_EQ(split(name, start, text, {step}), whole);
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(split(name, start, text, {cut, text.size()}), whole) << "cut at " << cut;
  }
  return whole;
}

constexpr std::string_view kOpened = "<|user|>Hi<|assistant|><think>";
constexpr std::string_view kClosed = "<|user|>Hi<|assistant|></think>";

TEST(ReasoningParser, Glm45) {
  EXPECT_EQ(split("glm45", kOpened, "thought</think>answer"), "thought|answer");
  EXPECT_EQ(split("glm45", kOpened, "thought</think>\n\nanswer </think> <think>x</think>"),
            "thought|\n\nanswer </think> <think>x</think>");
  EXPECT_EQ(split("glm45", kOpened, "all of it"), "all of it|");
  EXPECT_EQ(split("glm45", kOpened, "cut </thin"), "cut </thin|");
  EXPECT_EQ(split("glm45", kOpened, "a < b </ c </thinks> <tool </think>d"),
            "a < b </ c </thinks> <tool |d");
  EXPECT_EQ(split("glm45", kOpened, "</think>answer"), "|answer");
  EXPECT_EQ(split("glm45", kOpened, ""), "|");
  EXPECT_EQ(split("glm45", kOpened, "<think>again</think>x"), "again|x");
  EXPECT_EQ(split("glm45", kOpened, "<think><think>twice</think>x"), "twice|x");
  EXPECT_EQ(split("glm45", kOpened, "so <think> is a tag</think>x"), "so <think> is a tag|x");
  EXPECT_EQ(split("glm45", kClosed, "Hi"), "|Hi");
  EXPECT_EQ(split("glm45", kClosed, "<think>anyway</think>Hi"), "anyway|Hi");
  EXPECT_EQ(split("glm45", kClosed, "Hi <think>no</think>"), "|Hi <think>no</think>");
  EXPECT_EQ(split("glm45", "<|assistant|>", "\n<think>opens itself</think>x"), "opens itself|\nx");
}

// A call inside the thinking must reach the tool parser.
TEST(ReasoningParser, AToolCallEndsTheReasoning) {
  EXPECT_EQ(split("glm45", kOpened, "done.</think><tool_call>f</tool_call>"),
            "done.|<tool_call>f</tool_call>");
  EXPECT_EQ(split("glm45", kOpened, "done.<tool_call>f</tool_call></think>x"),
            "done.|<tool_call>f</tool_call></think>x");
  EXPECT_EQ(split("qwen3", kOpened, "x<tool_call>f"), "x|<tool_call>f");
  EXPECT_EQ(split("kimi_k2", kOpened, "x<|tool_calls_section_begin|>y"),
            "x|<|tool_calls_section_begin|>y");
  EXPECT_EQ(split("deepseek-v3", kOpened, "x<tool_call>f</think>y"), "x<tool_call>f|y");
}

TEST(ReasoningParser, HoldsBackOnlyWhatMayBecomeATag) {
  auto parser = make_reasoning_parser("glm45", {.prompt = kOpened});
  EXPECT_EQ(parser->append("a <").reasoning, "a ");
  EXPECT_EQ(parser->append("b").reasoning, "<b");
  EXPECT_EQ(parser->append("</think").reasoning, "");
  EXPECT_TRUE(parser->in_reasoning());
  EXPECT_EQ(parser->append(">c").content, "c");
  EXPECT_FALSE(parser->in_reasoning());
  EXPECT_EQ(parser->append("d <").content, "d <");
}

// Fault B100: where the text starts is read off the prompt.
TEST(ReasoningParser, StartsWhereThePromptLeftOff) {
  auto start = [](std::string_view format, const char* request) {
    auto pieces = testing::make_chat_format(format)->render(testing::chat_request(request));
    EXPECT_TRUE(pieces.ok());
    return control_text(pieces.value());
  };
  const std::string on = start("glm5", R"({"messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(split("glm45", on, "Hi"), "Hi|");
  const std::string off = start("glm5", R"({"messages": [{"role": "user", "content": "Hi"}],
                                            "enable_thinking": false})");
  EXPECT_EQ(split("glm45", off, "Hi"), "|Hi");
  const std::string after_tool =
      start("deepseek_v32", R"({"messages": [{"role": "user", "content": "Hi"},
          {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
          {"role": "tool", "content": "<think>"}]})");
  EXPECT_EQ(split("deepseek-v3", after_tool, "Hi"), "|Hi");
  const std::string closed = start("glm5", R"({"messages": [{"role": "user", "content": "Hi"},
          {"role": "assistant", "content": "hm</think>"}], "continue_final_message": true})");
  EXPECT_EQ(split("glm45", closed, "Hi"), "|Hi");
  const std::string inside = start("glm5", R"({"messages": [{"role": "user", "content": "Hi"},
          {"role": "assistant", "content": "hm"}], "continue_final_message": true})");
  EXPECT_EQ(split("glm45", inside, "Hi"), "Hi|");
  const std::string talked_about =
      start("chatml", R"({"messages": [{"role": "user", "content": "What does <think> do?"}]})");
  EXPECT_EQ(split("qwen3", talked_about, "It"), "|It");
}

// A prompt of ids has no text to look at.
TEST(ReasoningParser, SwitchesDecideWithoutAPrompt) {
  const json::Value empty = json::Object{};
  const json::Value on = json::Object{{"thinking", true}, {"enable_thinking", true}};
  const json::Value off = json::Object{{"thinking", false}, {"enable_thinking", false}};
  struct Case {
    const char* name;
    bool by_default;
    bool when_off;
  };
  for (const Case& c :
       {Case{"glm45", true, false}, Case{"qwen3", true, false}, Case{"deepseek-r1", true, true},
        Case{"deepseek-v3", false, false}, Case{"kimi_k2", true, false}}) {
    auto inside = [&](const json::Value* kwargs) {
      return make_reasoning_parser(c.name, {.prompt = "", .chat_template_kwargs = kwargs})
          ->in_reasoning();
    };
    EXPECT_EQ(inside(nullptr), c.by_default) << c.name;
    EXPECT_EQ(inside(&empty), c.by_default) << c.name;
    EXPECT_TRUE(inside(&on)) << c.name;
    EXPECT_EQ(inside(&off), c.when_off) << c.name;
  }
  EXPECT_EQ(split("deepseek-r1", "<｜Assistant｜>", "x</think>y"), "x|y");
}

TEST(ReasoningParser, NamesAreKnown) {
  EXPECT_EQ(make_reasoning_parser("nope", {}), nullptr);
  for (const std::string& name : reasoning_parser_names()) {
    EXPECT_NE(make_reasoning_parser(name, {}), nullptr) << name;
  }
}

// Fault B99, for any text and any cuts.
TEST(ReasoningParser, CutsDoNotMatter) {
  const bool held = rc::check([] {
    const auto name = *rc::gen::elementOf(reasoning_parser_names());
    const auto prompt = *rc::gen::element<std::string>("", "x", "<think>", "<think></think>");
    const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "<think>", "</think>", "<tool_call>", "<", "</", "think>", " ", "\n", "a", "tool_call>",
        "<|tool_calls_section_begin|>"));
    const auto sizes = *rc::gen::container<std::vector<size_t>>(*rc::gen::inRange<size_t>(1, 20),
                                                                rc::gen::inRange<size_t>(1, 12));
    std::string text;
    for (const std::string& part : parts) text += part;
    const ReasoningStart start{.prompt = prompt};
    RC_ASSERT(split(name, start, text, sizes) == split(name, start, text, {text.size() + 1}));
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace winnow::text
