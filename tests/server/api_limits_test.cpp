// Requests that ask for too much, or for nonsense: B106, B107, B109.
#include <gtest/gtest.h>

#include <random>

#include "server/limits.h"
#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::at;
using testing::HttpReply;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kCompletions = "/v1/completions";

class ApiLimits : public ::testing::Test {
 protected:
  void expect_refused(std::string_view path,
                      std::string_view body,
                      std::string_view param,
                      std::string_view in_message = "") {
    const HttpReply reply = serving_.post(path, body);
    const std::string shown(body.substr(0, 200));
    EXPECT_EQ(reply.status, 400) << path << " " << shown << "\n" << reply.body.substr(0, 500);
    const json::Value error = reply.json();
    EXPECT_EQ(at(error, "object"), json::Value("error")) << shown;
    EXPECT_EQ(at(error, "code"), json::Value(400));
    EXPECT_EQ(at(error, "error.param"), param.empty() ? json::Value() : json::Value(param))
        << shown << reply.body.substr(0, 300);
    EXPECT_EQ(at(error, "error.message"), at(error, "message"));
    const std::string& message = at(error, "message").as_string();
    EXPECT_NE(message.find(in_message), std::string::npos) << message;
    EXPECT_LT(message.size(), 400u);
  }

  void expect_alive() {
    EXPECT_EQ(serving_.post("/generate", R"({"text":"x"})").status, 200);
    EXPECT_TRUE(serving_.quiet());
    EXPECT_EQ(serving_.engine().stats().finished_error, 0);
  }

  static std::string chat(std::string_view member) {
    return fmt::format(R"({{"messages":[{{"role":"user","content":"x"}}],{}}})", member);
  }

  ServingFixture serving_{text_script("ok")};
};

// B106
TEST_F(ApiLimits, MaxTokensOfEveryKind) {
  struct Case {
    const char* value;
    bool good;
  };
  const Case cases[] = {{"0", true},     {"1", true},      {"-1", false},   {"2147483648", false},
                        {"1.5", false},  {"\"5\"", false}, {"null", true},  {"5.0", true},
                        {"true", false}, {"[1]", false},   {"9000", false}, {"1e400", false}};
  for (const auto& [value, good] : cases) {
    for (const char* field : {"max_tokens", "max_completion_tokens"}) {
      const HttpReply reply = serving_.post(kChat, chat(fmt::format(R"("{}":{})", field, value)));
      EXPECT_EQ(reply.status, good ? 200 : 400) << field << " " << value << reply.body;
    }
    for (const char* echo : {"true", "false"}) {
      const HttpReply reply = serving_.post(
          kCompletions, fmt::format(R"({{"prompt":"x","echo":{},"max_tokens":{}}})", echo, value));
      EXPECT_EQ(reply.status, good ? 200 : 400) << value << reply.body;
    }
  }
  const json::Value both =
      serving_.post(kChat, chat(R"("max_tokens":9,"max_completion_tokens":1)")).json();
  EXPECT_EQ(at(both, "usage.completion_tokens"), json::Value(1));
  expect_alive();
}

// B107
TEST_F(ApiLimits, HugeNumbersAndLists) {
  expect_refused(kChat, chat(R"("n":5000000)"), "n", "128");
  expect_refused(kChat, chat(R"("logprobs":true,"top_logprobs":1000000000)"), "top_logprobs",
                 "128");
  expect_refused(kChat, chat(R"("logprobs":true,"top_logprobs":262)"), "top_logprobs");
  expect_refused(kCompletions, R"({"prompt":"x","logprobs":1000000000})", "logprobs");
  expect_refused("/generate", R"({"text":"x","return_logprob":true,"top_logprobs_num":1000000})",
                 "top_logprobs_num");
  expect_refused(kCompletions, R"({"prompt":[999999999]})", "prompt", "999999999");
  expect_refused(kCompletions, R"({"prompt":[-1]})", "prompt", "-1");
  expect_refused("/generate", R"({"input_ids":[999999999]})", "input_ids");
  expect_refused("/generate", R"({"input_ids":[[1],[-1]]})", "input_ids[1]");
  expect_refused(kChat, chat(R"("logit_bias":{"999999":1})"), "logit_bias", "999999");
  expect_refused(kChat, chat(R"("logit_bias":{"-1":1})"), "logit_bias");
  expect_refused(kChat, chat(R"("logit_bias":{"x":1})"), "logit_bias");
  expect_refused(kChat, chat(R"("logit_bias":{"1":"x"})"), "logit_bias");
  expect_refused("/generate", R"({"text":"x","sampling_params":{"n":129}})", "sampling_params.n");

  std::string many = R"("logit_bias":{)";
  for (int i = 0; i < 100000; ++i) many += fmt::format("{}\"{}\":1", i > 0 ? "," : "", i);
  expect_refused(kChat, chat(many + "}"), "logit_bias", "1024");
  many = R"("stop":[)";
  for (int i = 0; i < 500000; ++i) many += i > 0 ? ",\"s\"" : "\"s\"";
  expect_refused(kChat, chat(many + "]"), "stop", "64");
  expect_refused(kChat, chat(fmt::format(R"("stop":"{}")", std::string(2000, 's'))), "stop",
                 "1024");
  many = R"({"messages":[)";
  for (int i = 0; i < 100000; ++i) {
    many +=
        i > 0 ? ",{\"role\":\"user\",\"content\":\"x\"}" : "{\"role\":\"user\",\"content\":\"x\"}";
  }
  expect_refused(kChat, many + "]}", "messages", "10000");
  many = R"({"prompt":[)";
  for (int i = 0; i < 5000; ++i) many += i > 0 ? ",\"x\"" : "\"x\"";
  expect_refused(kCompletions, many + "]}", "prompt", "4096");
  expect_refused(kCompletions,
                 fmt::format(R"({{"prompt":[{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},
                 {0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0},{0}],
                 "n":128}})",
                             "\"x\""),
                 "n", "4096");
  many = R"("token_ids_logprob":[)";
  for (int i = 0; i < 2000; ++i) many += i > 0 ? ",1" : "1";
  expect_refused("/generate", fmt::format(R"({{"text":"x","return_logprob":true,{}]}})", many),
                 "token_ids_logprob", "256");
  expect_alive();
}

TEST_F(ApiLimits, DepthAndSizeOfTheBody) {
  expect_refused(
      kChat,
      chat(fmt::format(R"("tools":{}{})", std::string(100000, '['), std::string(100000, ']'))), "",
      "JSON");
  expect_refused(kChat, std::string(100000, '{'), "");
  const HttpReply large = serving_.post(kChat, std::string(50 << 20, ' '));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(at(large.json(), "error.code"), json::Value(413));
  expect_alive();
}

// B109: every field with every wrong type.
TEST_F(ApiLimits, WrongTypes) {
  const std::pair<const char*, std::vector<const char*>> fields[] = {
      // Types that are wrong: s string, n number, b boolean, a array, o object.
      {"model", {"1", "true", "[]", "{}"}},
      {"messages",
       {"\"x\"", "1", "true", "{}", "[1]", "[\"x\"]", "[{}]", "[{\"role\":1}]",
        "[{\"role\":\"king\",\"content\":\"x\"}]", "[{\"role\":\"user\",\"content\":5}]",
        "[{\"role\":\"user\",\"content\":[5]}]",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]",
        "[{\"role\":\"assistant\",\"tool_calls\":[{}]}]",
        "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":3}}]}]"}},
      {"stream", {"\"true\"", "1", "[]", "{}"}},
      {"stream_options", {"\"x\"", "1", "true", "[]", "{\"include_usage\":1}"}},
      {"max_tokens", {"\"5\"", "true", "[]", "{}"}},
      {"temperature", {"\"1\"", "true", "[]", "{}", "-0.1", "1e300"}},
      {"top_p", {"\"1\"", "true", "[]", "{}", "0", "1.1"}},
      {"top_k", {"\"1\"", "true", "[]", "{}", "0", "-2", "1.5"}},
      {"min_p", {"\"1\"", "true", "[]", "{}", "-0.1", "1.1"}},
      {"frequency_penalty", {"\"1\"", "true", "[]", "{}", "-2.1", "2.1"}},
      {"presence_penalty", {"\"1\"", "true", "[]", "{}", "-2.1", "2.1"}},
      {"repetition_penalty", {"\"1\"", "true", "[]", "{}", "0", "2.1"}},
      {"n", {"\"1\"", "true", "[]", "{}", "0", "-1", "1.5"}},
      {"seed", {"\"1\"", "true", "[]", "{}", "1.5", "1e30"}},
      {"stop", {"1", "true", "{}", "[1]", "[null]"}},
      {"stop_token_ids", {"\"1\"", "true", "{}", "[\"1\"]", "[-1]", "[1.5]"}},
      {"min_tokens", {"\"1\"", "true", "[]", "{}", "-1"}},
      {"logprobs", {"1", "\"true\"", "[]", "{}"}},
      {"top_logprobs", {"\"1\"", "true", "[]", "{}", "-1", "3"}},
      {"logit_bias", {"1", "\"x\"", "true", "[]"}},
      {"tools",
       {"1", "\"x\"", "true", "{}", "[1]", "[{}]", "[{\"function\":{}}]",
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":5}}}]"}},
      {"tool_choice", {"1", "true", "[]", "\"sometimes\"", "\"required\"", "{}"}},
      {"response_format",
       {"1", "\"x\"", "true", "[]", "{}", "{\"type\":\"json_object\"}",
        "{\"type\":\"json_schema\"}"}},
      {"chat_template_kwargs", {"1", "\"x\"", "true", "[]"}},
      {"reasoning_effort", {"\"huge\"", "true", "[]", "{}", "1.5", "-1"}},
      {"reasoning", {"1", "\"x\"", "[]", "{\"enabled\":1}", "{\"effort\":\"x\"}"}},
      {"separate_reasoning", {"1", "\"x\"", "[]", "{}"}},
      {"stream_reasoning", {"1", "\"x\"", "[]", "{}"}},
      {"skip_special_tokens", {"1", "\"x\"", "[]", "{}"}},
      {"no_stop_trim", {"1", "\"x\"", "[]", "{}"}},
      {"ignore_eos", {"1", "\"x\"", "[]", "{}"}},
      {"continue_final_message", {"1", "\"x\"", "[]", "{}", "true"}},
      {"input_ids", {"\"x\"", "{}", "[\"x\"]", "[1.5]", "[[1]]"}},
      {"rid", {"1", "true", "[]", "{}"}},
      {"cache_salt", {"1", "true", "[]", "{}"}},
      {"regex", {"\"a*\""}},
      {"ebnf", {"\"a\""}},
      {"lora_path", {"\"a\""}},
      {"return_hidden_states", {"1", "true"}},
      {"parallel_tool_calls", {"1", "\"x\"", "[]", "{}"}},
  };
  for (const auto& [field, values] : fields) {
    for (const char* value : values) {
      const bool messages = std::string_view(field) == "messages";
      const std::string body = messages ? fmt::format(R"({{"messages":{}}})", value)
                                        : chat(fmt::format(R"("{}":{})", field, value));
      const HttpReply reply = serving_.post(kChat, body);
      EXPECT_EQ(reply.status, 400) << body << reply.body;
      const json::Value error = reply.json();
      const json::Value& message = at(error, "error.message");
      ASSERT_TRUE(message.is_string()) << body;
      EXPECT_FALSE(message.as_string().empty());
    }
  }
  expect_alive();
}

// B109, the other two endpoints: each kind of field with each wrong type names the field.
TEST_F(ApiLimits, WrongTypesOfCompletionsAndGenerate) {
  using Names = std::vector<const char*>;
  struct Kind {
    Names wrong;
    Names completions, sampling_params, generate;
  };
  const Kind kinds[] = {
      {{"\"1\"", "true", "[]", "{}"},
       {"max_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
        "presence_penalty", "repetition_penalty", "n", "seed", "min_tokens", "logprobs"},
       {"max_new_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
        "presence_penalty", "repetition_penalty", "n", "sampling_seed", "min_new_tokens"},
       {"logprob_start_len", "top_logprobs_num"}},
      {{"1", "\"x\"", "[]", "{}"},
       {"stream", "echo", "ignore_eos", "skip_special_tokens", "no_stop_trim"},
       {"ignore_eos", "skip_special_tokens", "no_stop_trim"},
       {"stream", "return_logprob", "return_text_in_logprobs", "return_prompt_token_ids"}},
      {{"1", "true", "{}"}, {"model", "rid", "cache_salt"}, {}, {"rid", "text"}},
      {{"\"1\"", "true", "{}", "[\"1\"]", "[1.5]"},
       {"stop_token_ids"},
       {"stop_token_ids"},
       {"input_ids"}},
      {{"1", "true", "{}", "[1]", "[null]"}, {"stop"}, {"stop"}, {}},
      {{"1", "\"x\"", "true"}, {"logit_bias", "stream_options"}, {}, {"sampling_params"}},
  };
  const auto expect_named = [&](std::string_view path, const std::string& body,
                                std::string_view field) {
    const HttpReply reply = serving_.post(path, body);
    EXPECT_EQ(reply.status, 400) << body << reply.body;
    const json::Value error = reply.json();
    const json::Value& param = at(error, "error.param");
    ASSERT_TRUE(param.is_string()) << body << reply.body;
    EXPECT_TRUE(param.as_string().starts_with(field)) << body << reply.body;
  };
  for (const Kind& kind : kinds) {
    for (const char* wrong : kind.wrong) {
      for (const char* field : kind.completions) {
        expect_named(kCompletions, fmt::format(R"({{"prompt":"x","{}":{}}})", field, wrong), field);
      }
      for (const char* field : kind.sampling_params) {
        expect_named("/generate",
                     fmt::format(R"({{"text":"x","sampling_params":{{"{}":{}}}}})", field, wrong),
                     fmt::format("sampling_params.{}", field));
      }
      for (const char* field : kind.generate) {
        const bool prompt =
            field == std::string_view("text") || field == std::string_view("input_ids");
        expect_named("/generate",
                     fmt::format(R"({{{}"{}":{}}})", prompt ? "" : "\"text\":\"x\",", field, wrong),
                     field);
      }
    }
  }
  expect_alive();
}

// Values that were once taken and lost: they change the answer, or seem to.
TEST_F(ApiLimits, NothingWrongIsPassedOver) {
  expect_refused(kChat, chat(R"("repetition_penalty":1e-300)"), "repetition_penalty", "1e-06");
  expect_refused(kChat, chat(R"("seed":9223372036854775808)"), "seed", "64 signed bits");
  expect_refused(kChat, chat(R"("logit_bias":{"1":1,"01":2})"), "logit_bias", "01");
  expect_refused(kChat, chat(R"("user":5)"), "user", "string");
  expect_refused(kChat, chat(R"("priority":"high")"), "priority", "integer");
  expect_refused(kChat, chat(R"("functions":[])"), "functions", "tools");
  expect_refused(kChat, chat(R"("custom_logit_processor":"x")"), "custom_logit_processor");
  expect_refused(
      kChat, chat(R"("tools":[{"function":{"name":"f","parameters":{"properties":{"a":[]}}}}])"),
      "tools[0].function.parameters.properties.a", "object");
  expect_refused(kChat,
                 R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f",)"
                 R"("arguments":"{\"a\":1e999}"}}]}]})",
                 "messages[0].tool_calls[0].function.arguments", "a is 1e999, beyond the range");
  expect_refused("/generate", R"({"text":"x","top_logprobs_num":5})", "top_logprobs_num",
                 "needs return_logprob");
  expect_refused("/generate", R"({"text":"x","token_ids_logprob":[5]})", "token_ids_logprob");
  expect_refused("/generate", "", "", "body is empty");
  expect_refused(kChat, chat(R"("min_tokens":9000)"), "min_tokens", "9000");
  expect_refused(kCompletions, R"({"prompt":"x","min_tokens":17})", "min_tokens", "16");
  expect_refused(kCompletions, R"({"prompt":"x","response_format":{"type":"json_object"}})",
                 "response_format.type");
  expect_refused(kCompletions, R"({"prompt":"x","return_token_ids":true})", "return_token_ids");
  expect_refused(kCompletions, R"({"prompt":[[1],2]})", "prompt[1]", "array");
  expect_refused("/generate", R"({"text":"x","input_ids":[1]})", "input_ids", "text");
  expect_refused("/generate", R"({"text":"x","sampling_params":{"min_new_tokens":129}})",
                 "sampling_params.min_new_tokens", "128");
  expect_refused("/detokenize", R"({"tokens":[[1],[999999999]]})", "tokens[1]", "999999999");
  for (const char* timeout : {"nan", "inf", "-1", "1e400", "5s", "", "3601"}) {
    expect_refused(fmt::format("/flush_cache?timeout={}", timeout), "", "timeout", "3600");
  }
  expect_alive();
}

// Too long: the field is named as the endpoint calls it.
TEST_F(ApiLimits, LengthsNameTheirField) {
  const std::string text(9000, 'x');
  expect_refused(kChat, fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}]}})", text),
                 "messages", "8192");
  expect_refused(kCompletions, fmt::format(R"({{"prompt":"{}"}})", text), "prompt", "8192");
  expect_refused("/generate", fmt::format(R"({{"text":"{}"}})", text), "text", "8192");
  expect_refused("/generate", R"({"text":"x","sampling_params":{"max_new_tokens":9000}})",
                 "sampling_params.max_new_tokens", "8192");
  ServingOptions small;
  small.engine.num_pages = 10;
  ServingFixture serving(text_script("ok"), small);
  for (const auto& [path, body, field] :
       {std::tuple(kChat, R"({{"messages":[{{"role":"user","content":"{}"}}]}})", "messages"),
        std::tuple(kCompletions, R"({{"prompt":"{}"}})", "prompt"),
        std::tuple(std::string_view("/generate"), R"({{"text":"{}"}})", "text")}) {
    const HttpReply reply =
        serving.post(path, fmt::format(fmt::runtime(body), std::string(161, 'x')));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(at(reply.json(), "error.param"), json::Value(field));
    EXPECT_NE(reply.body.find("KV cache (160 tokens"), std::string::npos) << reply.body;
  }
}

// What a body of 32 MiB may become: values of forty bytes each, texts of ids, choices' prompts.
TEST_F(ApiLimits, BodiesStaySmallWhenTheyAreRead) {
  std::string values = R"({"text":"x","a":[)";
  for (size_t i = 0; i <= server::kMaxJsonValues; ++i) values += "0,";
  const HttpReply reply = serving_.post("/generate", values + "0]}");
  EXPECT_EQ(reply.status, 413);
  EXPECT_NE(reply.body.find("4194304 JSON values"), std::string::npos) << reply.body;
  // What stands in strings is no value.
  const std::string text = R"({"text":"x","a":")" + std::string(5 << 20, ',') + R"(\"[,]"})";
  EXPECT_EQ(serving_.post("/generate", text).status, 200);
  std::string ids = R"({"tokens":[)";
  for (int64_t i = 0; i < server::kMaxDetokenizedIds; ++i) ids += "1,";
  expect_refused("/detokenize", ids + "1]}", "tokens", "2097152");
  expect_refused("/detokenize", R"({"tokens":[)" + ids.substr(10) + "1],[1]]}", "tokens",
                 "2097152");
  expect_alive();
}

TEST(ApiLimitsOfLongContexts, PromptsOfAllChoicesAreBounded) {
  ServingOptions options;
  options.engine.context_length = 16384;
  ServingFixture serving(text_script("ok"), options);
  std::string prompts = "[1";
  for (int i = 1; i < 8200; ++i) prompts += ",1";
  prompts += "]";
  for (int i = 0; i < 5; ++i) prompts += "," + prompts;  // 32 of them
  const HttpReply reply =
      serving.post(kCompletions, fmt::format(R"({{"prompt":[{}],"n":128}})", prompts));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(at(reply.json(), "error.param"), json::Value("n"));
  EXPECT_NE(reply.body.find("33554432"), std::string::npos) << reply.body.substr(0, 300);
}

// One body must not ask for more log-probs than memory holds: B107.
TEST_F(ApiLimits, PromptLogprobsAreBounded) {
  std::string prompts;
  for (int i = 0; i < 40; ++i)
    prompts += fmt::format("{}\"{}\"", i ? "," : "", std::string(4000, 'x'));
  expect_refused(
      kCompletions,
      fmt::format(R"({{"prompt":[{}],"echo":true,"logprobs":128,"max_tokens":0}})", prompts),
      "logprobs", "16777216");
  expect_refused("/generate",
                 fmt::format(R"({{"text":[{}],"return_logprob":true,"logprob_start_len":0,
                                  "top_logprobs_num":128}})",
                             prompts),
                 "return_logprob", "16777216");
  expect_alive();
}

TEST_F(ApiLimits, JsonSaysWhereAndHowDeep) {
  expect_refused(kChat, chat(R"("a":{"b":[1,18446744073709551615]})"), "a.b[1]", "a.b[1] is");
  expect_refused(kChat, chat(R"("a":[{"b":1,"b":2}])"), "a[0].b", "duplicate");
  expect_refused(kChat, chat(R"("seed":36893488147419103232)"), "seed", "beyond 64 signed bits");
  expect_refused(kChat, chat(R"("temperature":1e400)"), "temperature", "the range of doubles");
  expect_refused("/generate", R"({"text":"x","sampling_params":{"top_p":-1e999}})",
                 "sampling_params.top_p", "the range of doubles");
  expect_refused(kChat, chat(R"("user":"\ud800")"), "user", "surrogate");
  expect_refused(kChat, std::string(200, '[') + std::string(200, ']'), "", "deeper than 128");
  // Windows editors begin files with it, and Python's json takes it.
  EXPECT_EQ(serving_.post("/generate", "\xEF\xBB\xBF{\"text\":\"x\"}").status, 200);
}

TEST_F(ApiLimits, WhatIsQuotedStaysShortUtf8) {
  const auto path = "/" + std::string(20000, 'a');
  EXPECT_LT(serving_.get(path).body.size(), 4000u);
  for (const char* bytes : {"/%ff%fe", "/v1/models/%ff", "/\xff\xc3"}) {
    const HttpReply reply = serving_.get(bytes);
    EXPECT_EQ(reply.status, 404);
    EXPECT_TRUE(at(reply.json(), "error.message").is_string()) << reply.body;  // parses: UTF-8
  }
}

TEST_F(ApiLimits, BrokenJson) {
  const std::string valid = chat(R"("max_tokens":1)");
  std::vector<std::string> bodies = {"",     " ",       "null", "5",   "\"x\"",   "[]",
                                     "nope", "{\"a\"}", "{,}",  "{]}", "\xff\xfe"};
  bodies.push_back(valid + "x");
  bodies.push_back(chat(R"("max_tokens":1,)"));                // trailing comma
  bodies.push_back(chat(R"("max_tokens":1,"max_tokens":2)"));  // duplicate key
  bodies.push_back(chat(R"("temperature":NaN)"));
  bodies.push_back(chat(R"("temperature":Infinity)"));
  bodies.push_back(chat("\"user\":\"\xc3\x28\""));  // broken UTF-8
  for (size_t cut = 1; cut < valid.size(); ++cut) bodies.push_back(valid.substr(0, cut));
  for (const std::string& body : bodies) {
    const HttpReply reply = serving_.post(kChat, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_TRUE(at(reply.json(), "error.message").is_string()) << body;
  }
  expect_alive();
}

TEST_F(ApiLimits, FiveThousandMutatedBodies) {
  const std::string seeds[] = {
      chat(R"("stream":false,"max_tokens":2,"stop":["a"],"logit_bias":{"5":1},"n":2)"),
      R"({"prompt":["a","b"],"max_tokens":2,"logprobs":1,"echo":true})",
      R"({"text":["a"],"sampling_params":{"max_new_tokens":2,"stop":"x"},"return_logprob":true})",
  };
  const std::string_view paths[] = {kChat, kCompletions, "/generate"};
  std::mt19937 random(1);
  testing::HttpConnection connection(serving_.port());
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string body = seeds[i % 3];
    const int edits = 1 + static_cast<int>(random() % 3);
    for (int e = 0; e < edits; ++e) {
      const size_t where = random() % body.size();
      switch (random() % 3) {
        case 0:
          body[where] = static_cast<char>(random() % 256);
          break;
        case 1:
          body.erase(where, 1 + random() % 5);
          break;
        default:
          body.insert(where, 1, "{}[]\",:0129.eE-nulltruefalse"[random() % 28]);
      }
      if (body.empty()) body = "{";
    }
    connection.send(testing::request_text("POST", paths[i % 3], body));
    const HttpReply reply = connection.read_reply();
    ASSERT_TRUE(reply.complete) << body;
    ASSERT_TRUE(reply.status == 200 || reply.status == 400) << reply.status << body << reply.body;
    refused += reply.status == 400;
  }
  EXPECT_GT(refused, 2000);
  expect_alive();
}

}  // namespace
}  // namespace winnow
