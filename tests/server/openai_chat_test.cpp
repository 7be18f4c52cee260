#include <gtest/gtest.h>

#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::at;
using testing::HttpReply;
using testing::joined_deltas;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

constexpr std::string_view kChat = "/v1/chat/completions";

ServingOptions with_reasoning() {
  ServingOptions options;
  options.config.reasoning_parser = "glm45";
  return options;
}

// One user message and whatever else the body holds: chat_body(R"("stream":true)").
std::string chat_body(std::string_view members = "") {
  return fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"Hi"}}]{}{}}})",
                     members.empty() ? "" : ",", members);
}

std::vector<json::Value> chunks(const HttpReply& reply) {
  std::vector<json::Value> out;
  const auto events = reply.events();
  EXPECT_FALSE(events.empty()) << reply.status << reply.body;
  if (events.empty()) return out;
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) out.push_back(json::parse(events[i]).value());
  return out;
}

TEST(OpenAiChat, AnswersInOnePiece) {
  ServingFixture serving(text_script("Hello"));
  const HttpReply reply = serving.post(kChat, chat_body());
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::Value body = reply.json();
  EXPECT_EQ(at(body, "object"), json::Value("chat.completion"));
  EXPECT_EQ(at(body, "model"), json::Value("m"));
  EXPECT_EQ(at(body, "id").as_string().size(), 32u);
  EXPECT_EQ(at(body, "choices.0.message.role"), json::Value("assistant"));
  EXPECT_EQ(at(body, "choices.0.message.content"), json::Value("Hello"));
  EXPECT_EQ(at(body, "choices.0.finish_reason"), json::Value("stop"));
  EXPECT_EQ(at(body, "choices.0.matched_stop"), json::Value(256));
  EXPECT_TRUE(at(body, "choices.0.logprobs").is_null());
  EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(6));
  EXPECT_EQ(at(body, "usage.prompt_tokens"), json::Value(10));  // [user]Hi, two control tokens
  EXPECT_EQ(at(body, "usage.total_tokens"), json::Value(16));
  EXPECT_TRUE(at(body, "usage.prompt_tokens_details").is_null());
}

TEST(OpenAiChat, StreamsRoleTextFinishUsageDone) {
  for (const int32_t step : {1, 2, 3, 8}) {
    ServingFixture serving(text_script("Hello 🙂", {step}));
    const HttpReply reply =
        serving.post(kChat, chat_body(R"("stream":true,"stream_options":{"include_usage":true})"));
    const auto events = chunks(reply);
    ASSERT_GE(events.size(), 4u);
    EXPECT_EQ(at(events.front(), "choices.0.delta.role"), json::Value("assistant"));
    EXPECT_EQ(at(events.front(), "choices.0.delta.content"), json::Value(""));
    EXPECT_EQ(joined_deltas(reply.events(), "choices.0.delta.content"), "Hello 🙂");
    const json::Value& finish = events[events.size() - 2];
    EXPECT_EQ(at(finish, "choices.0.finish_reason"), json::Value("stop"));
    EXPECT_EQ(at(finish, "choices.0.matched_stop"), json::Value(256));
    EXPECT_EQ(at(events.back(), "choices").as_array().size(), 0u);
    EXPECT_EQ(at(events.back(), "usage.completion_tokens"), json::Value(11));
    for (size_t i = 0; i + 2 < events.size(); ++i) {
      EXPECT_TRUE(at(events[i], "choices.0.finish_reason").is_null());
      EXPECT_TRUE(at(events[i], "usage").is_null());
      EXPECT_EQ(at(events[i], "object"), json::Value("chat.completion.chunk"));
    }
    EXPECT_TRUE(serving.quiet());
  }
}

TEST(OpenAiChat, ContinuousUsageCountsUp) {
  ServingFixture serving(text_script("abc"));
  const HttpReply reply = serving.post(
      kChat, chat_body(R"("stream":true,"stream_options":{"continuous_usage_stats":true})"));
  int64_t last = 0;
  for (const json::Value& event : chunks(reply)) {
    const json::Value& count = at(event, "usage.completion_tokens");
    if (count.is_null()) continue;
    EXPECT_GE(count.as_integer(), last);
    last = count.as_integer();
  }
  EXPECT_EQ(last, 4);
}

// B85 and B94 through the whole server.
TEST(OpenAiChat, StopStringsAndSplitCharactersInEveryCut) {
  for (const int32_t step : {1, 2, 3, 5, 8}) {
    ServingFixture serving(text_script("中 Silver moon rises" + std::string(500, '.'), {step}));
    const std::string_view ask = R"("stop":["er mo"],"max_tokens":400)";
    const json::Value whole = serving.post(kChat, chat_body(ask)).json();
    EXPECT_EQ(at(whole, "choices.0.message.content"), json::Value("中 Silv"));
    EXPECT_EQ(at(whole, "choices.0.matched_stop"), json::Value("er mo"));
    EXPECT_EQ(at(whole, "usage.completion_tokens"), json::Value(13));
    const HttpReply stream =
        serving.post(kChat, chat_body(fmt::format(R"({},"stream":true)", ask)));
    EXPECT_EQ(joined_deltas(stream.events(), "choices.0.delta.content"), "中 Silv");
    EXPECT_TRUE(serving.quiet());
  }
}

TEST(OpenAiChat, ChoicesAreApartAndUsageCountsThePromptOnce) {
  ServingFixture serving([](const engine::GenerateRequest& request) {
    return text_script(std::string(static_cast<size_t>(request.choice) + 1, 'x'));
  });
  const json::Value body = serving.post(kChat, chat_body(R"("n":3,"seed":7)")).json();
  for (int64_t i = 0; i < 3; ++i) {
    const json::Value& choice = at(body, fmt::format("choices.{}", i));
    EXPECT_EQ(at(choice, "index"), json::Value(i));
    EXPECT_EQ(at(choice, "message.content"),
              json::Value(std::string(static_cast<size_t>(i) + 1, 'x')));
  }
  EXPECT_EQ(at(body, "usage.prompt_tokens"), json::Value(10));
  EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(2 + 3 + 4));
  const HttpReply stream = serving.post(kChat, chat_body(R"("n":3,"stream":true)"));
  std::map<int64_t, std::string> text;
  std::map<int64_t, int> finishes;
  std::map<int64_t, int> roles;
  for (const json::Value& event : chunks(stream)) {
    const int64_t idx = at(event, "choices.0.index").as_integer();
    if (at(event, "choices.0.delta.role").is_string()) ++roles[idx];
    const json::Value& content = at(event, "choices.0.delta.content");
    if (content.is_string()) text[idx] += content.as_string();
    if (at(event, "choices.0.finish_reason").is_string()) ++finishes[idx];
  }
  EXPECT_EQ(text, (std::map<int64_t, std::string>{{0, "x"}, {1, "xx"}, {2, "xxx"}}));
  EXPECT_EQ(finishes, (std::map<int64_t, int>{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(roles, finishes);
}

TEST(OpenAiChat, LogprobsOfEveryTokenInMultiTokenSteps) {
  for (const int32_t step : {1, 3}) {
    ServingFixture serving(text_script("abcde", {step}));
    const std::string_view ask = R"("logprobs":true,"top_logprobs":2)";
    const json::Value whole = serving.post(kChat, chat_body(ask)).json();
    const json::Array& items = at(whole, "choices.0.logprobs.content").as_array();
    ASSERT_EQ(items.size(), 6u);
    for (size_t i = 0; i < 5; ++i) {
      const std::string token(1, static_cast<char>('a' + i));
      EXPECT_EQ(at(items[i], "token"), json::Value(token));
      EXPECT_EQ(at(items[i], "bytes.0"), json::Value(static_cast<int64_t>('a' + i)));
      ASSERT_EQ(at(items[i], "top_logprobs").as_array().size(), 2u);
      EXPECT_EQ(at(items[i], "top_logprobs.0.token"), json::Value(token));
    }
    const HttpReply stream =
        serving.post(kChat, chat_body(fmt::format(R"({},"stream":true)", ask)));
    json::Array joined;
    for (const json::Value& event : chunks(stream)) {
      const json::Value& part = at(event, "choices.0.logprobs.content");
      if (part.is_array()) {
        joined.insert(joined.end(), part.as_array().begin(), part.as_array().end());
      }
    }
    EXPECT_EQ(joined, items);
  }
}

// B100: where the answer lands follows from the rendered prompt. B99: in any cut.
TEST(OpenAiChat, ReasoningAndContentInEveryCut) {
  struct Case {
    const char* messages_and_more;
    const char* reply;
    const char* reasoning;
    const char* content;
  };
  const Case cases[] = {
      {R"("messages":[{"role":"user","content":"Hi"}])", "why</think>\nHi", "why", "\nHi"},
      {R"("messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"enable_thinking":false})",
       "Hi", "", "Hi"},
      {R"("messages":[{"role":"user","content":"Hi"}],"reasoning_effort":"none")", "Hi", "", "Hi"},
      {R"("messages":[{"role":"user","content":"q"},{"role":"tool","content":"42"}])",
       "w</think>Hi", "w", "Hi"},
      {R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"<think>a</think>"}],"continue_final_message":true)",
       "Hi", "", "Hi"},
      {R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"<think>a"}],"continue_final_message":true)",
       "b</think>Hi", "b", "Hi"},
      {R"("messages":[{"role":"user","content":"Hi"}],"separate_reasoning":false)", "w</think>Hi",
       "", "w</think>Hi"},
  };
  for (const Case& c : cases) {
    for (const int32_t step : {1, 2, 3, 8}) {
      for (const char* reasoning_mode : {"true", "false"}) {
        ServingFixture serving(text_script(c.reply, {step}), with_reasoning());
        const std::string body = fmt::format(R"({{{}}})", c.messages_and_more);
        const json::Value whole = serving.post(kChat, body).json();
        const json::Value& message = at(whole, "choices.0.message");
        EXPECT_EQ(at(message, "content"), json::Value(c.content)) << body;
        EXPECT_EQ(at(message, "reasoning_content"),
                  c.reasoning[0] == 0 ? json::Value() : json::Value(c.reasoning));
        const HttpReply stream =
            serving.post(kChat, fmt::format(R"({{{},"stream":true,"stream_reasoning":{}}})",
                                            c.messages_and_more, reasoning_mode));
        EXPECT_EQ(joined_deltas(stream.events(), "choices.0.delta.content"), c.content) << body;
        EXPECT_EQ(joined_deltas(stream.events(), "choices.0.delta.reasoning_content"), c.reasoning);
      }
    }
  }
}

ServingOptions with_tools() {
  ServingOptions options = with_reasoning();
  options.config.tool_call_parser = "glm47";
  return options;
}

constexpr std::string_view kTwoCalls =
    "look up</think>\nOne moment.\n<tool_call>weather<arg_key>city</arg_key><arg_value>Oslo \"N\""
    "</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>"
    "<tool_call>list_rooms</tool_call>";
constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object",
       "properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}},
       {"type":"function","function":{"name":"list_rooms"}}])";

// Faults B99 and B101: the same calls whole and streamed, whatever a step delivers.
TEST(OpenAiChat, ToolCallsInEveryCut) {
  const char* arguments = "{\"city\": \"Oslo \\\"N\\\"\", \"days\": 3}";
  for (const int32_t step : {1, 2, 3, 5, 8}) {
    ServingFixture serving(text_script(kTwoCalls, {step}), with_tools());
    const json::Value whole = serving.post(kChat, chat_body(kTools)).json();
    const json::Value& message = at(whole, "choices.0.message");
    EXPECT_EQ(at(message, "reasoning_content"), json::Value("look up"));
    EXPECT_EQ(at(message, "content"), json::Value("\nOne moment."));
    ASSERT_EQ(at(message, "tool_calls").as_array().size(), 2u);
    EXPECT_EQ(at(message, "tool_calls.0.type"), json::Value("function"));
    EXPECT_EQ(at(message, "tool_calls.0.function.name"), json::Value("weather"));
    EXPECT_EQ(at(message, "tool_calls.0.function.arguments"), json::Value(arguments));
    EXPECT_EQ(at(message, "tool_calls.1.function.name"), json::Value("list_rooms"));
    EXPECT_EQ(at(message, "tool_calls.1.function.arguments"), json::Value("{}"));
    EXPECT_EQ(at(message, "tool_calls.0.id").as_string().size(), 29u);
    EXPECT_NE(at(message, "tool_calls.0.id"), at(message, "tool_calls.1.id"));
    EXPECT_EQ(at(whole, "choices.0.finish_reason"), json::Value("tool_calls"));
    EXPECT_TRUE(at(whole, "choices.0.matched_stop").is_null());

    std::string content;
    std::vector<json::Value> firsts;
    std::vector<std::string> joined;
    std::string finish;
    const auto all =
        chunks(serving.post(kChat, chat_body(fmt::format("{},\"stream\":true", kTools))));
    for (const json::Value& chunk : all) {
      const json::Value& choice = at(chunk, "choices.0");
      if (choice.find("finish_reason")->is_string()) {
        finish = choice.find("finish_reason")->as_string();
      }
      const json::Value* delta = choice.find("delta");
      const json::Value* text = delta->find("content");
      if (text != nullptr && text->is_string()) content += text->as_string();
      const json::Value* calls = delta->find("tool_calls");
      if (calls == nullptr) continue;
      const json::Value& call = calls->as_array().at(0);
      const auto idx = static_cast<size_t>(at(call, "index").as_integer());
      if (at(call, "id").is_string()) {
        EXPECT_EQ(idx, firsts.size());
        EXPECT_EQ(at(call, "function.arguments"), json::Value(""));
        firsts.push_back(call);
        joined.emplace_back();
        continue;
      }
      EXPECT_EQ(idx + 1, firsts.size());
      EXPECT_TRUE(at(call, "function.name").is_null());
      joined.at(idx) += at(call, "function.arguments").as_string();
    }
    EXPECT_EQ(content, "\nOne moment.");
    ASSERT_EQ(firsts.size(), 2u);
    EXPECT_EQ(at(firsts[0], "function.name"), json::Value("weather"));
    EXPECT_EQ(at(firsts[1], "function.name"), json::Value("list_rooms"));
    EXPECT_EQ(joined, (std::vector<std::string>{arguments, "{}"}));
    EXPECT_EQ(finish, "tool_calls");
  }
}

// Fault B101.
TEST(OpenAiChat, ToolCallsOnlyWhereTheyAreAskedFor) {
  ServingFixture serving(text_script(kTwoCalls), with_tools());
  const auto message = [&](std::string_view members) {
    return at(serving.post(kChat, chat_body(members)).json(), "choices.0.message");
  };
  const json::Value one = message(fmt::format("{},\"parallel_tool_calls\":false", kTools));
  EXPECT_EQ(at(one, "tool_calls").as_array().size(), 1u);
  for (const std::string& members :
       {std::string(), fmt::format("{},\"tool_choice\":\"none\"", kTools)}) {
    const json::Value plain = message(members);
    EXPECT_TRUE(at(plain, "tool_calls").is_null());
    EXPECT_NE(at(plain, "content").as_string().find("<tool_call>weather"), std::string::npos);
  }
  const json::Value cut =
      serving.post(kChat, chat_body(fmt::format("{},\"max_tokens\":60", kTools))).json();
  EXPECT_EQ(at(cut, "choices.0.finish_reason"), json::Value("length"));

  ServingFixture without(text_script(kTwoCalls), with_reasoning());
  const json::Value text = without.post(kChat, chat_body(kTools)).json();
  EXPECT_TRUE(at(text, "choices.0.message.tool_calls").is_null());
  EXPECT_EQ(at(text, "choices.0.finish_reason"), json::Value("stop"));
}

TEST(OpenAiChat, ReasoningTokensEndWithTheClosingTag) {
  for (const int32_t step : {1, 3, 8}) {
    ServingFixture serving(text_script("why</think>Hi", {step}), with_reasoning());
    const json::Value body = serving.post(kChat, chat_body(R"("stop":["zz"])")).json();
    EXPECT_EQ(at(body, "usage.reasoning_tokens"), json::Value(4));
    EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(7));
  }
  ServingFixture plain(text_script("why</think>Hi"));
  EXPECT_EQ(at(plain.post(kChat, chat_body()).json(), "usage.reasoning_tokens"), json::Value(0));
}

// B100: cut inside the thinking.
TEST(OpenAiChat, AReplyCutInsideTheThinkingIsAllReasoning) {
  ServingFixture serving(text_script("long thoughts"), with_reasoning());
  const json::Value body = serving.post(kChat, chat_body(R"("max_tokens":4)")).json();
  EXPECT_EQ(at(body, "choices.0.message.reasoning_content"), json::Value("long"));
  EXPECT_EQ(at(body, "choices.0.message.content"), json::Value(""));
  EXPECT_EQ(at(body, "choices.0.finish_reason"), json::Value("length"));
  const json::Value swapped =
      serving
          .post(
              kChat,
              chat_body(R"("max_tokens":4,"chat_template_kwargs":{"force_nonempty_content":true})"))
          .json();
  EXPECT_EQ(at(swapped, "choices.0.message.content"), json::Value("long"));
}

// The policy: stop strings look at all generated text, the thinking included.
TEST(OpenAiChat, StopStringsEndTheThinkingToo) {
  ServingFixture serving(text_script("let me STOP here</think>Hi"), with_reasoning());
  const json::Value body = serving.post(kChat, chat_body(R"("stop":"STOP")")).json();
  EXPECT_EQ(at(body, "choices.0.message.reasoning_content"), json::Value("let me "));
  EXPECT_EQ(at(body, "choices.0.message.content"), json::Value(""));
  EXPECT_EQ(at(body, "choices.0.finish_reason"), json::Value("stop"));
}

TEST(OpenAiChat, ToolsAreRenderedAndCallsStayText) {
  std::string prompt;
  ServingFixture serving([&](const engine::GenerateRequest& request) {
    prompt.assign(request.prompt_ids.begin(), request.prompt_ids.end());
    return text_script("<tool_call>f</tool_call>");
  });
  const std::string_view tools =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  const json::Value body = serving.post(kChat, chat_body(tools)).json();
  EXPECT_NE(prompt.find("[tools]"), std::string::npos);
  EXPECT_EQ(at(body, "choices.0.message.content"), json::Value("<tool_call>f</tool_call>"));
  serving.post(kChat, chat_body(fmt::format(R"({},"tool_choice":"none")", tools)));
  EXPECT_EQ(prompt.find("[tools]"), std::string::npos);
}

TEST(OpenAiChat, InputIdsBypassTheTemplate) {
  ServingFixture serving(text_script("x"));
  const json::Value body = serving.post(kChat, R"({"input_ids":[1,2,3]})").json();
  EXPECT_EQ(at(body, "usage.prompt_tokens"), json::Value(3));
  const json::Value ids =
      serving.post(kChat, R"({"input_ids":[1,2,3],"return_token_ids":true})").json();
  EXPECT_EQ(at(ids, "choices.0.token_ids"), json::Value(json::Array{'x', 256}));
}

TEST(OpenAiChat, CacheReport) {
  ServingOptions options;
  options.config.enable_cache_report = true;
  ServingFixture serving(text_script("x"), options);
  const std::string body =
      fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}]}})", std::string(100, 'p'));
  EXPECT_TRUE(at(serving.post(kChat, body).json(), "usage.prompt_tokens_details").is_null());
  EXPECT_TRUE(serving.quiet());
  const json::Value again = serving.post(kChat, body).json();
  EXPECT_GT(at(again, "usage.prompt_tokens_details.cached_tokens").as_integer(), 60);
}

TEST(OpenAiChat, SamplingReachesTheEngineWithTheModelsDefaults) {
  engine::SamplingParams seen;
  ServingOptions options;
  options.config.sampling_defaults = {.temperature = 0.6, .top_p = 0.95, .top_k = 40};
  ServingFixture serving(
      [&](const engine::GenerateRequest& request) {
        seen = request.sampling;
        return text_script("x");
      },
      options);
  serving.post(kChat, chat_body());
  EXPECT_FLOAT_EQ(seen.temperature, 0.6f);
  EXPECT_FLOAT_EQ(seen.top_p, 0.95f);
  EXPECT_EQ(seen.top_k, 40);
  EXPECT_EQ(seen.max_new_tokens, 8192 - 10);
  serving.post(kChat, chat_body(R"("temperature":0,"top_p":0.5,"top_k":-1,"min_p":0.1,"seed":-1,
      "max_tokens":5,"max_completion_tokens":7,"min_tokens":2,"stop_token_ids":[5],
      "ignore_eos":true,"logit_bias":{"65":-3},"presence_penalty":1,"frequency_penalty":-1,
      "repetition_penalty":1.5)"));
  EXPECT_EQ(seen.temperature, 0.0f);
  EXPECT_FLOAT_EQ(seen.top_p, 0.5f);
  EXPECT_EQ(seen.top_k, -1);
  EXPECT_EQ(seen.max_new_tokens, 7);
  EXPECT_EQ(seen.min_new_tokens, 2);
  EXPECT_EQ(seen.stop_token_ids, std::vector<int32_t>{5});
  EXPECT_TRUE(seen.ignore_eos);
  ASSERT_EQ(seen.logit_bias.size(), 1u);
  EXPECT_EQ(seen.logit_bias[0].first, 65);
  EXPECT_EQ(*seen.seed, ~uint64_t{0});
  EXPECT_FLOAT_EQ(seen.repetition_penalty, 1.5f);
}

}  // namespace
}  // namespace winnow
