#include <gtest/gtest.h>

#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::at;
using testing::HttpReply;
using testing::joined_deltas;
using testing::ServingFixture;
using testing::text_script;

constexpr std::string_view kCompletions = "/v1/completions";

TEST(OpenAiCompletions, AnswersInOnePiece) {
  ServingFixture serving(text_script(std::string(50, 'y')));
  const json::Value body = serving.post(kCompletions, R"({"prompt":"Hi"})").json();
  EXPECT_EQ(at(body, "object"), json::Value("text_completion"));
  EXPECT_EQ(at(body, "model"), json::Value("default"));
  EXPECT_EQ(at(body, "choices.0.text"), json::Value(std::string(16, 'y')));
  EXPECT_EQ(at(body, "choices.0.finish_reason"), json::Value("length"));
  EXPECT_TRUE(at(body, "choices.0.matched_stop").is_null());
  EXPECT_EQ(at(body, "usage.prompt_tokens"), json::Value(2));
  EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(16));
}

TEST(OpenAiCompletions, TheFinishRidesOnTheLastTextEvent) {
  ServingFixture serving(text_script("Hello", {2}));
  const HttpReply reply = serving.post(
      kCompletions,
      R"({"prompt":"Hi","stream":true,"max_tokens":5,"stream_options":{"include_usage":true}})");
  const auto events = reply.events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(joined_deltas(events, "choices.0.text"), "Hello");
  const json::Value usage = json::parse(events[events.size() - 2]).value();
  EXPECT_EQ(at(usage, "usage.completion_tokens"), json::Value(5));
  const json::Value last = json::parse(events[events.size() - 3]).value();
  EXPECT_EQ(at(last, "choices.0.text"), json::Value("o"));
  EXPECT_EQ(at(last, "choices.0.finish_reason"), json::Value("length"));
}

TEST(OpenAiCompletions, PromptListsArePromptMajor) {
  ServingFixture serving([](const engine::GenerateRequest& request) {
    return text_script(
        fmt::format("{}{}", static_cast<char>(request.prompt_ids[0]), request.choice));
  });
  for (const char* prompt : {R"(["a","b"])", "[[97],[98]]"}) {
    const json::Value body =
        serving.post(kCompletions, fmt::format(R"({{"prompt":{},"n":2}})", prompt)).json();
    const char* expected[] = {"a0", "a1", "b0", "b1"};
    ASSERT_EQ(at(body, "choices").as_array().size(), 4u);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(at(body, fmt::format("choices.{}.text", i)), json::Value(expected[i]));
      EXPECT_EQ(at(body, fmt::format("choices.{}.index", i)), json::Value(i));
    }
    EXPECT_EQ(at(body, "usage.prompt_tokens"), json::Value(2));
    EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(12));
  }
}

TEST(OpenAiCompletions, LogprobLists) {
  ServingFixture serving(text_script("ab", {2}));
  const json::Value body = serving.post(kCompletions, R"({"prompt":"Hi","logprobs":2})").json();
  const json::Value& logprobs = at(body, "choices.0.logprobs");
  EXPECT_EQ(at(logprobs, "tokens.0"), json::Value("a"));
  EXPECT_EQ(at(logprobs, "tokens.1"), json::Value("b"));
  EXPECT_EQ(at(logprobs, "token_logprobs").as_array().size(), 3u);
  EXPECT_EQ(at(logprobs, "text_offset.0"), json::Value(-1));
  EXPECT_EQ(at(logprobs, "top_logprobs.1").as_object().size(), 2u);
  EXPECT_FALSE(at(logprobs, "top_logprobs.1.b").is_null());
}

// B106, B115: echo, also with nothing to generate; cold, and with the prompt cached.
TEST(OpenAiCompletions, EchoWithLogprobs) {
  ServingFixture serving(text_script("!?"));
  for (const int64_t max_tokens : {0, 1}) {
    for (int round = 0; round < 2; ++round) {
      const HttpReply reply = serving.post(
          kCompletions, fmt::format(R"({{"prompt":"Good morning, world","echo":true,"logprobs":1,
                          "max_tokens":{}}})",
                                    max_tokens));
      ASSERT_EQ(reply.status, 200) << reply.body;
      const json::Value body = reply.json();
      EXPECT_EQ(at(body, "choices.0.text"),
                json::Value(max_tokens == 0 ? "Good morning, world" : "Good morning, world!"));
      const json::Value& logprobs = at(body, "choices.0.logprobs");
      ASSERT_EQ(at(logprobs, "tokens").as_array().size(), 19u + max_tokens);
      EXPECT_TRUE(at(logprobs, "token_logprobs.0").is_null());
      EXPECT_TRUE(at(logprobs, "top_logprobs.0").is_null());
      EXPECT_EQ(at(logprobs, "tokens.0"), json::Value("G"));
      EXPECT_NEAR(at(logprobs, "token_logprobs.1").as_number(), -('o' % 10) / 10.0, 1e-6);
      EXPECT_EQ(at(body, "usage.completion_tokens"), json::Value(max_tokens));
      EXPECT_TRUE(serving.quiet());
    }
  }
  const HttpReply stream =
      serving.post(kCompletions, R"({"prompt":[72,105],"echo":true,"stream":true})");
  EXPECT_EQ(joined_deltas(stream.events(), "choices.0.text"), "Hi!?");
}

TEST(OpenAiCompletions, Refusals) {
  ServingFixture serving(text_script("x"));
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "prompt"},
      {R"({"prompt":""})", "prompt"},
      {R"({"prompt":[]})", "prompt"},
      {R"({"prompt":["a",""]})", "prompt"},
      {R"({"prompt":[[]]})", "prompt"},
      {R"({"prompt":["a",1]})", "prompt"},
      {R"({"prompt":[1,"a"]})", "prompt"},
      {R"({"prompt":{}})", "prompt"},
      {R"({"prompt":"x","suffix":"y"})", "suffix"},
      {R"({"prompt":"x","lora_path":"y"})", "lora_path"},
      {R"({"prompt":"x","n":0})", "n"},
  };
  for (const auto& [body, param] : cases) {
    const HttpReply reply = serving.post(kCompletions, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(at(reply.json(), "param"), json::Value(param)) << reply.body;
  }
}

}  // namespace
}  // namespace winnow
