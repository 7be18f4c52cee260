// Whole serving runs against a server that answers by script.
#include "bench/serving_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "bench/load_generator.h"
#include "bench/send_one.h"
#include "bench/serving_report.h"
#include "testing/errors.h"
#include "testing/stub_server.h"
#include "testing/temp_folder.h"
#include "testing/tiny_tokenizer.h"

namespace winnow::bench {
namespace {

using testing::json_answer;
using testing::sse_answer;
using testing::StubAnswer;
using testing::StubEvent;
using testing::StubRequest;
using testing::StubServer;

std::string native_event(int tokens, bool last, int prompt_tokens, int cached) {
  return fmt::format(R"({{"text":"{}","meta_info":{{"prompt_tokens":{},"cached_tokens":{},)"
                     R"("completion_tokens":{},"finish_reason":{}}}}})",
                     std::string(static_cast<size_t>(tokens), 'x'), prompt_tokens, cached, tokens,
                     last ? R"({"type":"length"})" : "null");
}

// Answers as asked, a token an event; counts the prompt's bytes as tokens.
StubAnswer native_answer(const StubRequest& request) {
  const json::Value body = json::parse(request.body).value();
  const auto tokens =
      static_cast<int>(body.find("sampling_params")->find("max_new_tokens")->as_integer());
  const auto prompt = static_cast<int>(body.find("text")->as_string().size());
  std::vector<StubEvent> events;
  for (int i = 1; i <= tokens; ++i) events.push_back({native_event(i, i == tokens, prompt, 0)});
  events.push_back({"[DONE]"});
  return sse_answer(events);
}

StubAnswer chat_answer(const StubRequest& request) {
  const json::Value body = json::parse(request.body).value();
  std::vector<StubEvent> events = {{R"({"choices":[{"delta":{"role":"assistant"}}]})"}};
  const auto tokens = static_cast<int>(body.find("max_completion_tokens")->as_integer());
  for (int i = 0; i < tokens; ++i) {
    events.push_back({R"({"choices":[{"delta":{"reasoning_content":"y"}}]})"});
  }
  EXPECT_TRUE(body.find("stream_options")->find("include_usage")->as_bool());
  events.push_back({fmt::format(
      R"({{"choices":[],"usage":{{"prompt_tokens":10,"completion_tokens":{}}}}})", tokens)});
  events.push_back({"[DONE]"});
  return sse_answer(events);
}

class ServingRun : public ::testing::Test {
 protected:
  void SetUp() override {
    tokenizer_.write("tokenizer.json",
                     json::dump(testing::tiny_tokenizer_json(
                         {.merges = {}, .added_tokens = testing::tiny_glm_added_tokens()})));
  }

  StubAnswer answer(const StubRequest& request) {
    if (request.target == "/v1/models") return json_answer(R"({"data":[{"id":"tiny"}]})");
    if (request.target == "/model_info") {
      return json_answer(fmt::format(R"({{"tokenizer_path":"{}"}})", tokenizer_.path()));
    }
    if (request.target == "/server_info") {
      return json_answer(R"({"internal_states":[{"avg_spec_accept_length":2.5}]})");
    }
    if (request.target.starts_with("/flush_cache")) {
      return ++num_flushes_ < 3 ? json_answer("not idle", 400) : json_answer("Cache flushed.");
    }
    ++num_generated_;
    if (generate_) return generate_(request);
    return request.target == "/generate" ? native_answer(request) : chat_answer(request);
  }

  static DatasetOptions random_prompts() {
    return {.name = "random",
            .num_prompts = 12,
            .random_input_len = 10,
            .random_output_len = 4,
            .random_range_ratio = 1};
  }

  static DatasetOptions conversations() {
    return {.name = "generated-shared-prefix",
            .gsp_num_groups = 2,
            .gsp_prompts_per_group = 2,
            .gsp_system_prompt_len = 20,
            .gsp_question_len = 5,
            .gsp_output_len = 4,
            .gsp_num_turns = 3};
  }

  ServingResult run(ServingOptions options, DatasetOptions dataset = random_prompts()) {
    options.url = parse_url(server_.url()).value();
    options.dataset = std::move(dataset);
    options.live = false;
    return ServingBench(options, [](const std::string&) {}).run();
  }

  static ServingOptions with(std::string_view backend) {
    ServingOptions options;
    options.format = find_backend(backend);
    return options;
  }

  testing::TempFolder tokenizer_;
  std::atomic<int> num_flushes_{0};
  std::atomic<int> num_generated_{0};
  std::function<StubAnswer(const StubRequest&)> generate_;
  StubServer server_{[this](const StubRequest& request) { return answer(request); }};
};

// Six are answered, the warm-up among them, and the rest keeps the client waiting until it is told
// to stop.
TEST_F(ServingRun, AStopKeepsWhatHasEnded) {
  std::atomic<bool> stop = false;
  generate_ = [&](const StubRequest& request) {
    if (num_generated_ <= 6) return native_answer(request);
    StubAnswer stalled = native_answer(request);
    stalled.steps.resize(2);
    stalled.stall = true;
    if (num_generated_ == 9) stop = true;
    return stalled;
  };
  ServingOptions options = with("winnow");
  options.max_concurrency = 3;
  options.stop = &stop;
  const ServingResult result = run(options);
  EXPECT_EQ(result.records.size(), 5u);
  EXPECT_EQ(result.num_interrupted, 7);
  EXPECT_EQ(result.metrics.completed, 5);
  EXPECT_EQ(result.metrics.failed, 0);
  EXPECT_EQ(num_generated_, 9);
  EXPECT_EQ(serving_json(options, result, {}).find("interrupted")->as_integer(), 7);
  EXPECT_NE(testing::error_of([&] { run(options); }).find("interrupted before"), std::string::npos);
}

TEST_F(ServingRun, Native) {
  ServingOptions options = with("winnow");
  options.max_concurrency = 3;
  options.request_rate = 2000;
  const ServingResult result = run(options);
  const Metrics& m = result.metrics;
  EXPECT_EQ(m.completed, 12);
  EXPECT_EQ(m.failed, 0) << m.first_error;
  EXPECT_EQ(m.total_input, 120);
  EXPECT_EQ(m.total_input_nominal, 120);
  EXPECT_EQ(m.total_output, 48);
  EXPECT_EQ(m.total_output_retokenized, 48);
  EXPECT_EQ(m.itl.count, 36u);
  EXPECT_EQ(m.accept_length, 2.5);
  EXPECT_EQ(m.cached_tokens, 0);
  EXPECT_LE(m.peak_concurrent_requests, 3);
  EXPECT_EQ(num_generated_, 13);  // one to warm up
  EXPECT_TRUE(warnings(result.records, m).empty());
  for (const RequestRecord& r : result.records) {
    EXPECT_LE(r.due_ns, r.start_ns);
    EXPECT_LE(r.start_ns, r.events.front().received_ns);
  }
}

TEST_F(ServingRun, ChatOfAnyServer) {
  ServingOptions options = with("openai-chat");
  options.tokenizer = tokenizer_.path();
  options.warmup_requests = 3;
  const ServingResult result = run(options);
  EXPECT_EQ(result.metrics.completed, 12) << result.metrics.first_error;
  EXPECT_EQ(result.metrics.total_output, 48);
  EXPECT_EQ(result.records[0].text, "yyyy");
  EXPECT_EQ(result.records[0].events.size(), 4u);
  EXPECT_TRUE(result.server_info.is_null());
  EXPECT_EQ(num_generated_, 15);
}

// Three turns: each sends what was said before it, in one place of the concurrency limit.
TEST_F(ServingRun, ConversationsSayWhatWasSaid) {
  std::mutex mutex;
  std::map<size_t, int> by_size;  // messages in a request
  std::vector<std::string> longest;
  generate_ = [&](const StubRequest& request) {
    const json::Value body = json::parse(request.body).value();
    const json::Array& said = body.find("messages")->as_array();
    const std::lock_guard lock(mutex);
    ++by_size[said.size()];
    if (said.size() == 5) {
      longest.clear();
      for (const json::Value& message : said) {
        longest.push_back(message.find("role")->as_string() + " " +
                          message.find("content")->as_string());
      }
    }
    return chat_answer(request);
  };
  ServingOptions options = with("sglang-oai-chat");
  options.max_concurrency = 2;
  options.warmup_requests = 0;
  const ServingResult result = run(options, conversations());
  EXPECT_EQ(by_size, (std::map<size_t, int>{{1, 4}, {3, 4}, {5, 4}}));
  EXPECT_EQ(result.metrics.completed, 12);
  EXPECT_EQ(result.metrics.peak_concurrent_requests, 2);
  ASSERT_EQ(longest.size(), 5u);
  EXPECT_NE(longest[0].find("user "), std::string::npos);
  EXPECT_EQ(longest[1], "assistant yyyy");
  EXPECT_EQ(longest[3], "assistant yyyy");
  // As planned: the first prompt, an answer of 4, a question.
  EXPECT_GT(result.records[1].prompt_len, result.records[0].prompt_len + 4);
}

TEST_F(ServingRun, AConversationEndsWithItsFirstFailure) {
  generate_ = [&](const StubRequest& request) {
    const json::Value body = json::parse(request.body).value();
    return body.find("messages")->as_array().size() < 3 ? chat_answer(request)
                                                        : json_answer("{}", 503);
  };
  ServingOptions options = with("openai-chat");
  options.model = "tiny";
  options.tokenizer = tokenizer_.path();
  const ServingResult result = run(options, conversations());
  EXPECT_EQ(result.metrics.completed, 4);
  EXPECT_EQ(result.metrics.failed, 8);
  EXPECT_EQ(num_generated_, 1 + 8);  // warm-up, then two turns of each
  EXPECT_EQ(result.records[2].error, "a turn before it failed");
  EXPECT_NE(result.metrics.first_error.find("HTTP 503"), std::string::npos);
}

TEST_F(ServingRun, WholeAnswersAndTwoThreads) {
  generate_ = [](const StubRequest& request) {
    EXPECT_NE(request.body.find("\"stream\":false"), std::string::npos);
    return json_answer(
        R"({"text":"abcd","meta_info":{"prompt_tokens":10,"completion_tokens":4,"finish_reason":
            {"type":"length"}}})");
  };
  ServingOptions options = with("winnow");
  options.request.stream = false;
  options.io_threads = 2;
  const ServingResult result = run(options);
  EXPECT_EQ(result.metrics.completed, 12) << result.metrics.first_error;
  EXPECT_EQ(result.metrics.total_output, 48);
  EXPECT_EQ(result.metrics.itl.count, 0u);
  EXPECT_DOUBLE_EQ(result.metrics.ttft.mean, result.metrics.e2e.mean);
}

// serving.md 1.2: a status of 200 with an error in its stream, a stream cut off, a refusal.
TEST_F(ServingRun, FailuresAreCounted) {
  generate_ = [this](const StubRequest& request) {
    switch (num_generated_) {
      case 3:
        return sse_answer({{R"({"error":{"message":"too long"}})"}, {"[DONE]"}});
      case 4: {
        StubAnswer cut = native_answer(request);
        cut.steps.resize(2);
        cut.close = true;
        return cut;
      }
      case 5:
        return json_answer(R"({"error":{"message":"full"}})", 503);
      case 6:
        return sse_answer({{native_event(1, false, 10, 0)}});
      default:
        return native_answer(request);
    }
  };
  ServingOptions options = with("sglang");
  options.max_concurrency = 1;
  const ServingResult result = run(options);
  EXPECT_EQ(result.metrics.completed, 8);
  EXPECT_EQ(result.metrics.failed, 4);
  EXPECT_EQ(result.metrics.first_error, "too long");
  EXPECT_EQ(result.metrics.total_output, 32);
  EXPECT_NE(result.records[2].error.find("in the middle"), std::string::npos);
  EXPECT_EQ(result.records[3].error, "HTTP 503: full");
  EXPECT_NE(result.records[4].error.find("without [DONE]"), std::string::npos);
}

// B121: the flush waits until the server is idle, and says so where it never is.
TEST_F(ServingRun, FlushWaitsAndFailsLoudly) {
  ServingOptions options = with("winnow");
  options.flush_cache = true;
  run(options);
  EXPECT_EQ(num_flushes_, 3);
  num_flushes_ = -1000;
  options.flush_timeout_s = 0.3;
  EXPECT_NE(testing::error_of([&] { run(options); }).find("not idle"), std::string::npos);
  ServingOptions cannot = with("openai");
  cannot.tokenizer = tokenizer_.path();
  cannot.flush_cache = true;
  cannot.warmup_requests = 0;
  EXPECT_NE(testing::error_of([&] { run(cannot); }).find("no way"), std::string::npos);
}

TEST_F(ServingRun, NothingRunsWhenWarmUpFails) {
  generate_ = [](const StubRequest&) { return json_answer(R"({"error":{"message":"no"}})", 400); };
  EXPECT_NE(testing::error_of([&] { run(with("winnow")); }).find("HTTP 400: no"),
            std::string::npos);
  EXPECT_EQ(num_generated_, 1);
}

TEST_F(ServingRun, AStallEndsWithTheTimeout) {
  generate_ = [](const StubRequest&) {
    StubAnswer stall = sse_answer({{native_event(1, false, 10, 0)}});
    stall.steps.pop_back();
    stall.stall = true;
    return stall;
  };
  StreamClient client({.url = parse_url(server_.url()).value(), .timeout_s = 0.05});
  const auto records =
      run_load(client, {{.body = "{}", .due_s = 0, .prompt_len = 10, .output_len = 4}},
               {.target = "/generate", .events = {}});
  EXPECT_NE(records[0].error.find("no answer within 0.05 s"), std::string::npos);
  EXPECT_EQ(records[0].events.size(), 1u);
}

TEST_F(ServingRun, SendOneAsksForJson) {
  std::string asked;
  generate_ = [&](const StubRequest& request) {
    asked = request.body;
    return json_answer(
        R"({"text":"{\"city\":1}","meta_info":{"completion_tokens":4,"e2e_latency":2}})");
  };
  SendOneOptions options;
  options.url = parse_url(server_.url()).value();
  options.json = true;
  const SendOneResult result = send_one(options, [](std::string_view) {});
  EXPECT_EQ(result.text, R"({"city":1})");
  EXPECT_EQ(result.tokens_per_s, 2);
  const json::Value body = json::parse(asked).value();
  EXPECT_NE(body.find("text")->as_string().find("capital of France"), std::string::npos) << asked;
  EXPECT_EQ(body.find("sampling_params")->find("json_schema")->as_string(), "$$ANY$$");
  EXPECT_EQ(body.find("sampling_params")->find("max_new_tokens")->as_integer(), 512);
}

TEST_F(ServingRun, SendOneWholeAndStreamed) {
  generate_ = [](const StubRequest& request) {
    if (request.body.find("\"stream\":true") != std::string::npos) {
      return sse_answer(
          {{native_event(1, false, 10, 0)}, {native_event(3, true, 10, 0)}, {"[DONE]"}});
    }
    return json_answer(R"({"text":"hi","meta_info":{"completion_tokens":2,"e2e_latency":0.5}})");
  };
  SendOneOptions options;
  options.url = parse_url(server_.url()).value();
  std::string shown;
  const auto show = [&](std::string_view text) { shown += text; };
  const SendOneResult whole = send_one(options, show);
  EXPECT_EQ(whole.text, "hi");
  EXPECT_EQ(whole.tokens_per_s, 4);
  options.stream = true;
  EXPECT_EQ(send_one(options, show).text, "xxx");
  EXPECT_EQ(shown, "xxx");
  generate_ = [](const StubRequest&) { return json_answer(R"({"error":{"message":"no"}})", 400); };
  EXPECT_EQ(testing::error_of([&] { send_one(options, show); }), "HTTP 400: no");
}

}  // namespace
}  // namespace winnow::bench
