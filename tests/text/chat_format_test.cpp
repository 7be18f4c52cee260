#include "text/chat_format.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "testing/chat_formats.h"
#include "testing/tiny_tokenizer.h"
#include "text/chat_jinja_format.h"
#include "text/chat_messages.h"
#include "text/deepseek_v32_chat.h"

namespace winnow::text {
namespace {

using testing::chat_request;
using testing::render;
using testing::render_marked;

// Fault B91: what clients send as arguments and content of the second turn.
TEST(ChatFormat, ArgumentsInEveryForm) {
  struct Case {
    const char* arguments;
    const char* glm5;  // between the name and </tool_call>; nullptr: refused
    const char* kimi;
  };
  const Case cases[] = {
      {R"(, "arguments": "{\"a\":1}")", "<arg_key>a</arg_key><arg_value>1</arg_value>",
       R"({"a": 1})"},
      {R"(, "arguments": {"a": "x"})", "<arg_key>a</arg_key><arg_value>x</arg_value>",
       R"({"a": "x"})"},
      {R"(, "arguments": "{}")", "", "{}"},
      {R"(, "arguments": "")", "", "{}"},
      {R"(, "arguments": " \n")", "", "{}"},
      {R"(, "arguments": null)", "", "{}"},
      {"", "", "{}"},
      {R"(, "arguments": "[1]")", nullptr, nullptr},
      {R"(, "arguments": "not json")", nullptr, nullptr},
      {R"(, "arguments": "{\"a\":1")", nullptr, nullptr},
      {R"(, "arguments": [1])", nullptr, nullptr},
      {R"(, "arguments": 5)", nullptr, nullptr},
  };
  for (const Case& c : cases) {
    const std::string request =
        std::string(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant",
          "tool_calls": [{"id": "f:0", "type": "function", "function": {"name": "f")") +
        c.arguments + R"(}}]}, {"role": "tool", "content": "r"}]})";
    for (const std::string& name : testing::chat_format_names()) {
      const std::string prompt = render(name, request);
      if (c.glm5) {
        EXPECT_NE(prompt.substr(0, 6), "error:") << name << c.arguments << prompt;
      } else {
        EXPECT_TRUE(
            prompt.starts_with("error: messages[1].tool_calls[0].function.arguments must be a "
                               "string that holds a JSON object"))
            << name << c.arguments << prompt;
      }
    }
    if (!c.glm5) continue;
    EXPECT_EQ(render("glm5", request),
              std::string("[gMASK]<sop><|user|>q<|assistant|></think><tool_call>f") + c.glm5 +
                  "</tool_call><|observation|><tool_response>r</tool_response><|assistant|>"
                  "<think>");
    EXPECT_NE(render("kimi_k2", request)
                  .find(std::string("<|tool_call_argument_begin|>") + c.kimi + "<|tool_call_end|>"),
              std::string::npos);
  }
}

// Fault B91.
TEST(ChatFormat, ContentInEveryForm) {
  for (const std::string& name : testing::chat_format_names()) {
    auto prompt = [&](const char* members) {
      return render(name, std::string(R"({"messages": [{"role": "user", "content": "q"},
                                                       {"role": "assistant")") +
                              members + R"(}, {"role": "user", "content": "again"}]})");
    };
    const std::string empty = prompt(R"(, "content": "")");
    EXPECT_NE(empty.substr(0, 6), "error:") << name << empty;
    EXPECT_EQ(prompt(R"(, "content": null)"), empty) << name;
    EXPECT_EQ(prompt(""), empty) << name;
    EXPECT_EQ(prompt(R"(, "content": [])"), empty) << name;
    EXPECT_EQ(prompt(R"(, "content": [{"type": "text", "text": "yes"}])"),
              prompt(R"(, "content": "yes")"))
        << name;
    EXPECT_EQ(prompt(R"(, "content": [{"type": "thinking", "thinking": "hm"},
                                      {"type": "text", "text": "yes"}])"),
              prompt(R"(, "content": "yes", "reasoning_content": "hm")"))
        << name;
    EXPECT_EQ(prompt(R"(, "content": "yes", "reasoning": "hm")"),
              prompt(R"(, "content": "yes", "reasoning_content": "hm")"))
        << name;
    for (const char* bad :
         {R"(, "content": 5)", R"(, "content": {"a": 1})", R"(, "content": [5])",
          R"(, "content": [{"type": "image_url", "image_url": {"url": "x"}}])",
          R"(, "content": [{"type": "text"}])", R"(, "content": "x", "reasoning_content": 5)",
          R"(, "tool_calls": {})", R"(, "tool_calls": [5])", R"(, "tool_calls": [{}])",
          R"(, "tool_calls": [{"function": {"name": ""}}])"}) {
      EXPECT_EQ(prompt(bad).substr(0, 18), "error: messages[1]") << name << bad;
    }
  }
}

// Fields of the wrong kind, and words for the template that would stand for the request itself.
TEST(ChatFormat, RefusalsNameTheField) {
  const auto param = [](const char* messages, const char* tools, const char* kwargs) {
    ChatRequest request;
    request.messages = json::parse(messages).value();
    request.tools = json::parse(tools).value();
    request.chat_template_kwargs = json::parse(kwargs).value();
    return normalized(request, {}).status().param;
  };
  const char* user = R"([{"role":"user","content":"x"}])";
  for (const char* taken : {"messages", "tools", "add_generation_prompt"}) {
    EXPECT_EQ(param(user, "null", fmt::format(R"({{"{}":1}})", taken).c_str()),
              fmt::format("chat_template_kwargs.{}", taken));
  }
  EXPECT_EQ(param(R"([{"role":"user","name":5}])", "null", "{}"), "messages[0].name");
  EXPECT_EQ(param(R"([{"role":"tool","tool_call_id":{}}])", "null", "{}"),
            "messages[0].tool_call_id");
  EXPECT_EQ(param(R"([{"role":"assistant","tool_calls":[{"id":1,"function":{"name":"f"}}]}])",
                  "null", "{}"),
            "messages[0].tool_calls[0].id");
  EXPECT_EQ(param(user, R"([{"function":{"name":"f","parameters":"x"}}])", "{}"),
            "tools[0].function.parameters");
  EXPECT_EQ(param(user, R"([{"function":{"name":"f","description":1}}])", "{}"),
            "tools[0].function.description");
}

// The built-in encoder knows the kinds of its switches; a template takes what it is given.
// A million parts were copied for each form that a template may want.
TEST(ChatFormat, PartsOfAMessageAreBounded) {
  const auto with_parts = [](int count) {
    std::string request = R"({"messages": [{"role": "user", "content": ["x")";
    for (int i = 1; i < count; ++i) request += ", \"x\"";
    return request + "]}]}";
  };
  for (const std::string& name : testing::chat_format_names()) {
    EXPECT_EQ(render(name, with_parts(10001)),
              "error: messages[0].content must have at most 10000 parts, got 10001")
        << name;
    EXPECT_FALSE(render(name, with_parts(10000)).starts_with("error:")) << name;
  }
}

TEST(ChatFormat, SwitchesOfTheBuiltInEncoderAreBooleans) {
  const auto format = make_deepseek_v32_format();
  for (const char* name : {"thinking", "enable_thinking", "drop_thinking"}) {
    for (const char* value : {"\"false\"", "0", "[]", "true", "null"}) {
      ChatRequest request;
      request.messages = json::parse(R"([{"role":"user","content":"x"}])").value();
      request.chat_template_kwargs =
          json::parse(fmt::format(R"({{"{}":{}}})", name, value)).value();
      const bool good = std::string_view(value) == "true" || std::string_view(value) == "null";
      const auto rendered = format->render(request);
      EXPECT_EQ(rendered.ok(), good) << name << value;
      if (!good) {
        EXPECT_EQ(rendered.status().param, fmt::format("chat_template_kwargs.{}", name));
      }
    }
  }
}

TEST(ChatFormat, ToolResultsJoinTheirParts) {
  for (const std::string& name : testing::chat_format_names()) {
    auto prompt = [&](const char* content) {
      return render(name, std::string(R"({"messages": [{"role": "user", "content": "q"},
          {"role": "assistant", "tool_calls": [{"id": "f:0", "function": {"name": "f"}}]},
          {"role": "tool", "tool_call_id": "f:0", "content": )") +
                              content + "}]}");
    };
    EXPECT_EQ(prompt(R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])"),
              prompt(R"("a b")"))
        << name;
    EXPECT_NE(prompt(R"("a b")").find("a b"), std::string::npos) << name;
  }
}

// Parts go to a template that takes them as they are; others see one text.
TEST(ChatFormat, PartsAreJoinedAsTheTemplateDoes) {
  constexpr const char* kParts = R"({"messages": [{"role": "user", "content": [
      {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]})";
  EXPECT_EQ(render("glm5", kParts), "[gMASK]<sop><|user|>ab<|assistant|><think>");
  EXPECT_EQ(render("deepseek_v31", kParts),
            "<｜begin▁of▁sentence｜><｜User｜>a b<｜Assistant｜></think>");
}

TEST(ChatFormat, RolesAreEvenedOut) {
  EXPECT_EQ(render("glm5", R"({"messages": [{"role": "developer", "content": "d"},
                                            {"role": "User", "content": "u"}]})"),
            "[gMASK]<sop><|system|>d<|user|>u<|assistant|><think>");
  for (
      const char* bad :
      {R"({"messages": [{"role": "nobody", "content": "x"}]})",
       R"({"messages": [{"content": "x"}]})", R"({"messages": [{"role": 5}]})",
       R"({"messages": [5]})", R"({"messages": []})", R"({"messages": "x"})",
       R"({"messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]})",
       R"({"messages": [{"role": "user"}], "tools": {}})",
       R"({"messages": [{"role": "user"}], "tools": [5]})",
       R"({"messages": [{"role": "user"}], "tools": [{"type": "web"}]})"}) {
    EXPECT_EQ(render("glm5", bad).substr(0, 6), "error:") << bad;
  }
}

TEST(ChatFormat, AFinalAssistantMessageStaysOne) {
  EXPECT_EQ(render("glm5", R"({"messages": [{"role": "user", "content": "u"},
                                            {"role": "assistant", "content": "a"}]})"),
            "[gMASK]<sop><|user|>u<|assistant|></think>a<|assistant|><think>");
}

TEST(ChatFormat, ContinuesTheFinalMessage) {
  auto prompt = [](const char* last, const char* more = "") {
    return render_marked(
        "glm5", chat_request(std::string(R"({"messages": [{"role": "user", "content": "u"}, )") +
                             last + R"(], "continue_final_message": true)" + more + "}"));
  };
  const std::string head = "[gMASK]<sop><|user|>«u»<|assistant|>";
  EXPECT_EQ(prompt(R"({"role": "assistant", "content": "so"})"), head + "<think>«so»");
  EXPECT_EQ(prompt(R"({"role": "assistant", "content": "<think>hm</think>so <|user|>"})"),
            head + "<think>«hm»</think>«so <|user|>»");
  EXPECT_EQ(prompt(R"({"role": "assistant", "content": "so", "reasoning_content": "hm"})"),
            head + "<think>«hm»</think>«so»");
  EXPECT_EQ(prompt(R"({"role": "assistant", "reasoning_content": "hm"})"), head + "<think>«hm»");
  EXPECT_EQ(prompt(R"({"role": "assistant", "content": "so"})", R"(, "enable_thinking": false)"),
            head + "</think>«so»");
  EXPECT_EQ(prompt(R"({"role": "assistant", "content": "</think>so", "reasoning_content": "hm"})",
                   R"(, "enable_thinking": false)"),
            head + "</think>«so»");
  EXPECT_EQ(prompt(R"({"role": "user", "content": "so"})").substr(0, 6), "error:");
  EXPECT_EQ(render("deepseek_v32", R"({"messages": [{"role": "user", "content": "u"},
      {"role": "assistant", "content": "so"}], "continue_final_message": true})"),
            "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜></think>so");
}

// Fault B88: control tokens in content are content. The prompt's text is the same either way.
TEST(ChatFormat, ContentIsMarkedToTheByte) {
  const auto request = chat_request(R"({"messages": [
      {"role": "system", "content": "[gMASK]<sop>"},
      {"role": "user", "content": [{"type": "text", "text": "<|us"}, {"type": "text", "text": "er|>"}]},
      {"role": "assistant", "content": "  <think>hm</think> yes <|user|> ", "tool_calls": [{
        "function": {"name": "<tool_call>", "arguments": {"</arg_key>": "</arg_value>", "n": ["<sop>"]}}}]},
      {"role": "tool", "content": "<|assistant|></think>"}],
    "tools": [{"type": "function", "function": {"name": "<|user|>", "x": 1.0}}],
    "clear_thinking": false})");
  const std::string marked = render_marked("glm5", request);
  const size_t tools = marked.find("<tools>\n");
  ASSERT_NE(tools, std::string::npos);
  EXPECT_EQ(marked.substr(tools, marked.find("\n</tools>") - tools),
            R"(<tools>
«{"type": "function", "function": {"name": "<|user|>", "x": 1.0}}»)");
  EXPECT_EQ(marked.substr(marked.find("<|system|>«")),
            "<|system|>«[gMASK]<sop>»<|user|>«<|user|>»<|assistant|><think>«hm»</think>"
            "«yes <|user|>»<tool_call>«<tool_call>»<arg_key>«</arg_key>»</arg_key><arg_value>"
            "«</arg_value>»</arg_value><arg_key>«n»</arg_key><arg_value>«[\"<sop>\"]»</arg_value>"
            "</tool_call><|observation|><tool_response>«<|assistant|></think>»</tool_response>"
            "<|assistant|><think>");
  auto pieces = testing::make_chat_format("glm5")->render(request);
  ChatRequest open = request;
  open.parse_control_tokens = true;
  auto parsed = testing::make_chat_format("glm5")->render(open);
  ASSERT_TRUE(pieces.ok() && parsed.ok());
  ASSERT_EQ(parsed.value().size(), 1u);
  EXPECT_EQ(parsed.value()[0].control, ControlTokens::kParse);
  EXPECT_EQ(parsed.value()[0].text, joined(pieces.value()));
}

constexpr const char* kControlTokens[] = {"<|user|>",
                                          "<|assistant|>",
                                          "<|system|>",
                                          "<|observation|>",
                                          "[gMASK]",
                                          "<sop>",
                                          "<think>",
                                          "</think>",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "<arg_key>",
                                          "<|im_end|>",
                                          "<|im_user|>",
                                          "<|im_middle|>",
                                          "<｜User｜>",
                                          "<｜Assistant｜>",
                                          "<｜end▁of▁sentence｜>",
                                          "<｜tool▁calls▁begin｜>",
                                          "<|im_start|>",
                                          "<|tool_call_begin|>"};

// What the prompts of two requests that differ in content only have in common is ours: our
// pieces must not change with what the content says.
TEST(ChatFormat, ContentNeverReachesOurPieces) {
  for (const std::string& name : testing::chat_format_names()) {
    const auto format = testing::make_chat_format(name);
    auto ours = [&](const std::string& text) {
      const json::Value content = text;
      ChatRequest request;
      const json::Value call = json::Object{
          {"id", content},
          {"function",
           json::Object{{"name", content}, {"arguments", json::Object{{text, content}}}}}};
      request.messages = json::Array{
          json::Object{{"role", "system"}, {"content", content}},
          json::Object{{"role", "user"}, {"content", content}, {"name", content}},
          json::Object{{"role", "assistant"},
                       {"content", content},
                       {"reasoning_content", content},
                       {"tool_calls", json::Array{call}}},
          json::Object{{"role", "tool"}, {"content", content}, {"tool_call_id", content}}};
      request.tools = json::Array{
          json::Object{{"type", "function"},
                       {"function", json::Object{{"name", content}, {"description", content}}}}};
      auto pieces = format->render(request);
      EXPECT_TRUE(pieces.ok()) << name << pieces.status().message;
      std::string control;
      for (const PromptPiece& piece : pieces.value()) {
        if (piece.control == ControlTokens::kParse) control += piece.text;
      }
      return control;
    };
    const std::string expected = ours("harmless");
    for (const char* token : kControlTokens) {
      EXPECT_EQ(ours(token), expected) << name << " " << token;
      EXPECT_EQ(ours(std::string("a ") + token + " b"), expected) << name << " " << token;
    }
  }
}

// Fault B88 in ids: a prompt has the control tokens that it has with harmless content.
TEST(ChatFormat, ContentMakesNoControlTokens) {
  const auto tokenizer = testing::make_byte_tokenizer();
  const auto format = testing::make_chat_format("glm5");
  auto control_ids = [&](const std::string& content, bool parse) {
    ChatRequest request;
    request.messages = json::Array{json::Object{{"role", "user"}, {"content", content}},
                                   json::Object{{"role", "tool"}, {"content", content}}};
    request.parse_control_tokens = parse;
    auto pieces = format->render(request);
    EXPECT_TRUE(pieces.ok());
    std::vector<int32_t> ids = tokenizer->encode(pieces.value());
    EXPECT_EQ(tokenizer->decode(ids, false), joined(pieces.value()));
    std::erase_if(ids, [&](int32_t id) {
      const auto& added = tokenizer->added_tokens();
      return std::none_of(added.begin(), added.end(),
                          [&](const AddedToken& token) { return token.id == id; });
    });
    return ids;
  };
  const std::vector<int32_t> expected = control_ids("harmless", false);
  EXPECT_FALSE(expected.empty());
  for (const char* content : {"<|user|>", "<|assistant|></think>", "<tool_call>", "[gMASK]<sop>"}) {
    EXPECT_EQ(control_ids(content, false), expected) << content;
    EXPECT_GT(control_ids(content, true).size(), expected.size()) << content;
  }
}

std::unique_ptr<ChatFormat> format_of(const std::string& source) {
  return make_jinja_format({source, "", {{"bos_token", "<s>"}}}, "test");
}

TEST(ChatFormat, TriesTheFormThatATemplateWants) {
  const auto request = chat_request(R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\":1}"}}]}],
    "tools": [{"type": "function", "function": {"name": "f"}}]})");
  EXPECT_EQ(
      render(*format_of("{{ 'args: ' + messages[1].tool_calls[0].function.arguments }}"), request),
      R"(args: {"a":1})");
  EXPECT_EQ(render(*format_of("{{ 'tool: ' + tools[0].name }}"), request), "tool: f");
  EXPECT_EQ(render(*format_of("{{ tools[0].name + messages[1].tool_calls[0].function.arguments }}"),
                   request),
            R"(f{"a":1})");
  EXPECT_EQ(render(*format_of("{{ bos_token }}{{ raise_exception('no tools here') }}"), request),
            "error: the chat template refuses this: no tools here");
  EXPECT_EQ(render(*format_of("a\n{{ messages[9].x }}"), request),
            "error: the chat template fails in line 2: list object has no element 9");
}

TEST(ChatFormat, RolesMayMakeControlTokens) {
  EXPECT_EQ(render_marked("chatml", chat_request(R"({"messages": [{"role": "user",
                                                     "content": "u"}]})")),
            "<|im_start|>user\n«u»<|im_end|>\n<|im_start|>assistant\n");
  auto pieces =
      format_of("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}")
          ->render(chat_request(R"({"messages": [{"role": "user", "content": "u"}]})"));
  ASSERT_TRUE(pieces.ok());
  EXPECT_EQ(pieces.value()[0].text, "<|user|>");
  EXPECT_EQ(pieces.value()[0].control, ControlTokens::kParse);
}

class LoadChatFormat : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("winnow_chat_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string prompt(std::string_view architecture, const char* more = "") {
    auto format = load_chat_format(folder_.string(), architecture);
    if (!format) return "none";
    return render(*format, chat_request(std::string(R"({"messages": [{"role": "user",
                                          "content": "u"}])") +
                                        more + "}"));
  }
  std::filesystem::path folder_;
};

TEST_F(LoadChatFormat, PrefersTheCheckpointsOwn) {
  EXPECT_EQ(prompt("GlmMoeDsaForCausalLM"), "none");
  EXPECT_EQ(prompt("DeepseekV32ForCausalLM"),
            "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜></think>");
  EXPECT_EQ(prompt("DeepseekV3ForCausalLM", R"(, "thinking": true)"),
            "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜><think>");
  write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": null,
        "chat_template": "{{ bos_token }}config {{ messages[0].content }}"})");
  EXPECT_EQ(prompt("DeepseekV32ForCausalLM"), "<s>config u");
  write("tokenizer_config.json", R"({"chat_template": [
        {"name": "default", "template": "default"}, {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(prompt("x"), "default");
  EXPECT_EQ(prompt("x", R"(, "tools": [{"function": {"name": "f"}}])"), "tools");
  write("chat_template.jinja", "file {{ messages[0].content }}\n");
  EXPECT_EQ(prompt("x"), "file u");
}

TEST_F(LoadChatFormat, NamesFileAndLineOfABadTemplate) {
  write("chat_template.jinja", "a\n{% if x %}\n{% endfor %}");
  try {
    load_chat_format(folder_.string(), "x");
    FAIL();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("chat_template.jinja, line 3: "), std::string::npos) << what;
  }
  write("chat_template.jinja", "");
  write("tokenizer_config.json", "{");
  EXPECT_THROW(load_chat_format(folder_.string(), "x"), Error);
}

}  // namespace
}  // namespace winnow::text
