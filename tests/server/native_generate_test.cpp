#include <gtest/gtest.h>

#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::at;
using testing::HttpReply;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

std::vector<json::Value> parsed_events(const HttpReply& reply) {
  std::vector<json::Value> out;
  const auto events = reply.events();
  EXPECT_FALSE(events.empty());
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) out.push_back(json::parse(events[i]).value());
  return out;
}

TEST(NativeGenerate, AnswersWithTextIdsAndMetaInfo) {
  ServingFixture serving(text_script("Hello"));
  const HttpReply reply = serving.post(
      "/generate", R"({"text":"Hi","sampling_params":{"temperature":0,"max_new_tokens":32}})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::Value body = reply.json();
  EXPECT_EQ(at(body, "text"), json::Value("Hello"));
  EXPECT_EQ(at(body, "output_ids").as_array().size(), 6u);  // EOS stays in the ids
  EXPECT_EQ(at(body, "meta_info.finish_reason.type"), json::Value("stop"));
  EXPECT_EQ(at(body, "meta_info.finish_reason.matched"), json::Value(256));
  EXPECT_EQ(at(body, "meta_info.prompt_tokens"), json::Value(2));
  EXPECT_EQ(at(body, "meta_info.completion_tokens"), json::Value(6));
  EXPECT_EQ(at(body, "meta_info.cached_tokens"), json::Value(0));
  EXPECT_TRUE(at(body, "meta_info.e2e_latency").is_double());
  EXPECT_TRUE(at(body, "index").is_null());
  EXPECT_TRUE(serving.quiet());
}

TEST(NativeGenerate, LengthAndPrefillOnly) {
  ServingFixture serving(text_script("Hello"));
  for (const int64_t n : {0, 1, 3}) {
    const json::Value body =
        serving
            .post("/generate",
                  fmt::format(
                      R"({{"input_ids":[72,105],"sampling_params":{{"max_new_tokens":{}}}}})", n))
            .json();
    EXPECT_EQ(at(body, "text"), json::Value(std::string("Hello").substr(0, n)));
    EXPECT_EQ(at(body, "meta_info.finish_reason.type"), json::Value("length"));
    EXPECT_EQ(at(body, "meta_info.finish_reason.length"), json::Value(n));
  }
  EXPECT_TRUE(serving.quiet());
}

TEST(NativeGenerate, StreamsEverythingSoFar) {
  ServingFixture serving(text_script("Hello", {2, 1, 3}));
  const HttpReply reply =
      serving.post("/generate", R"({"text":"Hi","stream":true,"sampling_params":{}})");
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream; charset=utf-8");
  std::string last;
  const auto events = parsed_events(reply);
  for (const json::Value& event : events) {
    const std::string text = at(event, "text").as_string();
    EXPECT_TRUE(text.starts_with(last));
    last = text;
  }
  EXPECT_EQ(last, "Hello");
  EXPECT_EQ(at(events.back(), "meta_info.finish_reason.type"), json::Value("stop"));
  EXPECT_FALSE(at(events.back(), "meta_info.e2e_latency").is_null());
  EXPECT_EQ(at(events.back(), "output_ids").as_array().size(), 6u);
}

TEST(NativeGenerate, IncrementalStreamsJoin) {
  ServingOptions options;
  options.config.incremental_streaming_output = true;
  ServingFixture serving(text_script("Hello, world", {2, 1, 3}), options);
  const HttpReply reply = serving.post(
      "/generate", R"({"text":"Hi","stream":true,"return_logprob":true,"sampling_params":{}})");
  size_t num_ids = 0;
  size_t num_logprobs = 0;
  for (const json::Value& event : parsed_events(reply)) {
    num_ids += at(event, "output_ids").as_array().size();
    num_logprobs += at(event, "meta_info.output_token_logprobs").as_array().size();
  }
  EXPECT_EQ(testing::joined_deltas(reply.events(), "text"), "Hello, world");
  EXPECT_EQ(num_ids, 13u);
  EXPECT_EQ(num_logprobs, 13u);
}

TEST(NativeGenerate, BatchesAndChoicesArePromptMajorLists) {
  ServingFixture serving([](const engine::GenerateRequest& request) {
    return text_script(
        fmt::format("{}{}", static_cast<char>(request.prompt_ids[0]), request.choice));
  });
  const json::Value body =
      serving.post("/generate", R"({"text":["a","b"],"rid":"R","sampling_params":{"n":2}})").json();
  ASSERT_EQ(body.as_array().size(), 4u);
  const char* expected[] = {"a0", "a1", "b0", "b1"};
  for (size_t i = 0; i < 4; ++i) {
    const json::Value& item = body.as_array()[i];
    EXPECT_EQ(at(item, "text"), json::Value(expected[i]));
    EXPECT_EQ(at(item, "index"), json::Value(static_cast<int64_t>(i)));
    EXPECT_EQ(at(item, "meta_info.id"), json::Value(fmt::format("R_{}", i)));
  }
  const json::Value one = serving.post("/generate", R"({"text":["a"]})").json();
  EXPECT_TRUE(one.is_array());
  const json::Value lists = serving
                                .post("/generate", R"({"input_ids":[[97],[98]],"rid":["x","y"],
        "sampling_params":[{"max_new_tokens":1},{"max_new_tokens":2}]})")
                                .json();
  EXPECT_EQ(at(lists, "0.text"), json::Value("a"));
  EXPECT_EQ(at(lists, "1.text"), json::Value("b0"));
  EXPECT_EQ(at(lists, "1.meta_info.id"), json::Value("y"));
}

TEST(NativeGenerate, StreamedBatchesCarryTheIndex) {
  ServingFixture serving([](const engine::GenerateRequest& request) {
    return text_script(std::string(3, static_cast<char>(request.prompt_ids[0])));
  });
  const HttpReply reply =
      serving.post("/generate", R"({"text":["a","b"],"stream":true,"sampling_params":{}})");
  std::string text[2];
  for (const json::Value& event : parsed_events(reply)) {
    text[at(event, "index").as_integer()] = at(event, "text").as_string();
  }
  EXPECT_EQ(text[0], "aaa");
  EXPECT_EQ(text[1], "bbb");
}

TEST(NativeGenerate, LogprobListsOfBothSides) {
  ServingFixture serving(text_script("Yo"));
  const json::Value body =
      serving
          .post("/generate", R"({"text":"Hi!","return_logprob":true,"logprob_start_len":0,
              "top_logprobs_num":2,"token_ids_logprob":[7],"return_text_in_logprobs":true})")
          .json();
  const json::Value& meta = at(body, "meta_info");
  ASSERT_EQ(at(meta, "input_token_logprobs").as_array().size(), 3u);
  EXPECT_TRUE(at(meta, "input_token_logprobs.0.0").is_null());
  EXPECT_EQ(at(meta, "input_token_logprobs.0.1"), json::Value('H'));
  EXPECT_EQ(at(meta, "input_token_logprobs.2.2"), json::Value("!"));
  ASSERT_EQ(at(meta, "output_token_logprobs").as_array().size(), 3u);
  EXPECT_EQ(at(meta, "output_token_logprobs.0.2"), json::Value("Y"));
  EXPECT_NEAR(at(meta, "output_token_logprobs.0.0").as_number(), -('Y' % 10) / 10.0, 1e-6);
  EXPECT_EQ(at(meta, "output_top_logprobs.1").as_array().size(), 2u);
  EXPECT_EQ(at(meta, "output_top_logprobs.1.0.1"), json::Value('o'));
  EXPECT_EQ(at(meta, "output_token_ids_logprobs.0.0.1"), json::Value(7));
  EXPECT_EQ(at(meta, "output_token_logprobs_length"), json::Value(3));
}

TEST(NativeGenerate, StopStringsEndTheSequenceInTheEngineToo) {
  ServingFixture serving(text_script(fmt::format("one Question two {}", std::string(4000, 'x'))));
  const HttpReply reply = serving.post(
      "/generate",
      R"({"text":"Hi","sampling_params":{"max_new_tokens":4000,"stop":["Question","<|eos|>"]}})");
  const json::Value body = reply.json();
  EXPECT_EQ(at(body, "text"), json::Value("one "));
  EXPECT_EQ(at(body, "meta_info.finish_reason.matched"), json::Value("Question"));
  EXPECT_EQ(at(body, "meta_info.completion_tokens"), json::Value(12));
  EXPECT_TRUE(serving.quiet());
}

TEST(NativeGenerate, RefusesBeforeTheFirstHeaderEvenWhenStreaming) {
  ServingFixture serving(text_script("x"));
  const std::pair<const char*, const char*> cases[] = {
      {R"({"sampling_params":{}})", "text"},
      {R"({"input_ids":[],"sampling_params":{}})", "input_ids"},
      {R"({"text":"x","sampling_params":{"top_q":1}})", "sampling_params.top_q"},
      {R"({"text":"x","sampling_params":{"top_p":0}})", "sampling_params.top_p"},
      {R"({"text":"x","sampling_params":{"max_new_tokens":100000}})",
       "sampling_params.max_new_tokens"},
      {R"({"text":"x","sampling_params":{"json_schema":"{}"}})", "sampling_params.json_schema"},
      {R"({"text":["x","y"],"sampling_params":[{}]})", "sampling_params"},
      {R"({"text":["x","y"],"rid":["a","a"]})", "rid"},
      {R"({"text":"x","return_logprob":true,"logprob_start_len":5})", "logprob_start_len"},
      {R"({"text":"x","image_data":"y"})", "image_data"},
  };
  for (const auto& [body, param] : cases) {
    for (const bool stream : {false, true}) {
      std::string text = body;
      if (stream) text.insert(1, R"("stream":true,)");
      const HttpReply reply = serving.post("/generate", text);
      EXPECT_EQ(reply.status, 400) << text;
      EXPECT_EQ(at(reply.json(), "error.param"), json::Value(param)) << reply.body;
      EXPECT_FALSE(at(reply.json(), "error.message").as_string().empty());
    }
  }
  const HttpReply long_input =
      serving.post("/generate", fmt::format(R"({{"text":"{}"}})", std::string(9000, 'x')));
  EXPECT_EQ(long_input.status, 400);
  EXPECT_NE(long_input.body.find("9000"), std::string::npos);
  EXPECT_NE(long_input.body.find("8192"), std::string::npos);
}

TEST(NativeGenerate, TextPrefixIsAddedOnce) {
  ServingOptions options;
  options.config.text_prefix_ids = {testing::ByteTokenizer::kUser};
  ServingFixture serving(text_script("x"), options);
  for (const char* text : {"ab", "<|user|>ab"}) {
    const json::Value body =
        serving.post("/generate", fmt::format(R"({{"text":"{}"}})", text)).json();
    EXPECT_EQ(at(body, "meta_info.prompt_tokens"), json::Value(3));
  }
  const json::Value ids = serving.post("/generate", R"({"input_ids":[97,98]})").json();
  EXPECT_EQ(at(ids, "meta_info.prompt_tokens"), json::Value(2));
}

TEST(NativeGenerate, PutWorksAndDuplicateRidsAreRefused) {
  ServingFixture serving(text_script("x"));
  testing::HttpConnection connection(serving.port());
  connection.send(testing::request_text("PUT", "/generate", R"({"text":"a"})"));
  EXPECT_EQ(connection.read_reply().status, 200);
  // Its entry goes a moment after its reply has been written.
  ASSERT_TRUE(testing::eventually([&] { return serving.api().live.size() == 0; }));
  serving.executor().stall();
  testing::HttpConnection first(serving.port());
  first.send(testing::request_text("POST", "/generate", R"({"text":"a","rid":"same"})"));
  ASSERT_TRUE(testing::eventually([&] { return serving.api().live.size() == 1; }));
  const HttpReply second = serving.post("/generate", R"({"text":"a","rid":"same"})");
  EXPECT_EQ(second.status, 400);
  EXPECT_EQ(at(second.json(), "error.param"), json::Value("rid"));
  serving.executor().release();
  EXPECT_EQ(first.read_reply().status, 200);
}

}  // namespace
}  // namespace winnow
