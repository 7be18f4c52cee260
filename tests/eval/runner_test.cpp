#include "eval/runner.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "eval/model_name.h"
#include "eval/summary.h"
#include "testing/answering_server.h"
#include "testing/errors.h"
#include "testing/temp_folder.h"

namespace winnow::eval {
namespace {

using testing::AnsweringServer;
using testing::ModelAnswer;

// Question i's answer is right when it is "i".
Task counting_task(size_t num_questions) {
  Task task;
  task.name = "counting";
  task.common_prefix = std::string(100, 'x') + "\n";
  for (size_t i = 0; i < num_questions; ++i) {
    task.questions.push_back({.id = fmt::format("counting/{}", i),
                              .prompt = fmt::format("Say {}", i),
                              .label = std::to_string(i),
                              .category = ""});
  }
  task.grade = [](size_t i, std::string_view answer) -> Verdict {
    if (answer.empty()) return {};
    return {std::string(answer), answer == std::to_string(i) ? Outcome::kRight : Outcome::kWrong};
  };
  return task;
}

class Runner : public ::testing::Test {
 protected:
  RunnerOptions options(const AnsweringServer& server) const {
    RunnerOptions options;
    options.url = bench::parse_url(server.url()).value();
    options.request.model = "stub/model";
    options.parallel = 8;
    options.retry_delay_s = 0.001;
    return options;
  }

  SampleFile file(const std::string& name, const Task& task, int64_t repeats = 1) const {
    return SampleFile::create(folder_.file(name),
                              {.task = task.name,
                               .model = "stub/model",
                               .server = "",
                               .repeats = repeats,
                               .num_questions = static_cast<int64_t>(task.questions.size()),
                               .common_prefix = "",
                               .settings = {}});
  }

  RunResult run(const Task& task,
                const RunnerOptions& options,
                SampleFile& file,
                std::vector<Sample> earlier = {}) {
    ProgressLine progress(ProgressLine::Style::kSilent);
    return run_task(task, options, std::move(earlier), file, progress, stop_);
  }

  static std::string last_word(std::string_view prompt) {
    return std::string(prompt.substr(prompt.rfind(' ') + 1));
  }

  testing::TempFolder folder_;
  std::atomic<bool> stop_ = false;
};

TEST_F(Runner, KnownAnswersGiveTheKnownScore) {
  const Task task = counting_task(40);
  AnsweringServer server([](std::string_view prompt, int64_t) -> ModelAnswer {
    const std::string word = last_word(prompt);
    if (word == "3") return {.text = "no"};
    if (word == "4") return {.text = "", .reasoning = "long", .finish_reason = "length"};
    return {.text = word};
  });
  SampleFile samples = file("s.jsonl", task, 2);
  RunnerOptions two = options(server);
  two.repeats = 2;
  two.request.seed = 7;
  const RunResult result = run(task, two, samples);
  const Summary summary = summarize(result.samples);
  EXPECT_EQ(summary.num_right, 76);
  EXPECT_EQ(summary.num_wrong, 2);
  EXPECT_EQ(summary.num_invalid, 2);
  EXPECT_EQ(summary.num_truncated, 2);
  EXPECT_EQ(summary.num_repeats, 2);
  EXPECT_EQ(result.completion_tokens, 800);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.repeat_seconds.size(), 2u);
  EXPECT_EQ(read_earlier_samples(samples.path()).size(), 80u);
  int64_t second_repeat = 0;
  for (const json::Value& body : server.asked()) {
    EXPECT_EQ(body.find("model")->as_string(), "stub/model");
    second_repeat += body.find("seed")->as_integer() == 8;
  }
  EXPECT_EQ(second_repeat, 40);
}

TEST_F(Runner, RetriesCountOnceAndRefusalsAreFinal) {
  const Task task = counting_task(10);
  std::atomic<int> troubles = 0;
  AnsweringServer server([&](std::string_view prompt, int64_t) -> ModelAnswer {
    const std::string word = last_word(prompt);
    if (word == "1" && troubles++ < 2) return {.text = "busy", .status = 503};
    if (word == "2") return {.text = "too long", .status = 400};
    return {.text = word};
  });
  SampleFile samples = file("s.jsonl", task);
  const RunResult result = run(task, options(server), samples);
  ASSERT_EQ(result.samples.size(), 10u);
  EXPECT_EQ(server.asked().size(), 12u);
  const Summary summary = summarize(result.samples);
  EXPECT_EQ(summary.num_right, 9);
  EXPECT_EQ(summary.num_refused, 1);
  EXPECT_EQ(summary.num_retried, 1);
  for (const Sample& sample : result.samples) {
    EXPECT_EQ(sample.attempts, sample.id == "counting/1" ? 3 : 1);
    if (sample.id == "counting/2") {
      EXPECT_NE(sample.error.find("too long"), std::string::npos);
    }
  }
}

TEST_F(Runner, WhatFailedIsAskedAgainOnResume) {
  const Task task = counting_task(6);
  std::atomic<bool> broken = true;
  AnsweringServer server([&](std::string_view prompt, int64_t) -> ModelAnswer {
    const std::string word = last_word(prompt);
    if (broken && (word == "1" || word == "5")) return {.text = "busy", .status = 500};
    return {.text = word};
  });
  RunnerOptions twice = options(server);
  twice.max_retries = 1;
  SampleFile samples = file("s.jsonl", task);
  const RunResult first = run(task, twice, samples);
  EXPECT_EQ(summarize(first.samples).num_failed, 2);
  EXPECT_EQ(server.asked().size(), 8u);
  broken = false;
  const RunResult second = run(task, twice, samples, read_earlier_samples(samples.path()));
  EXPECT_EQ(server.asked().size(), 10u);  // only the two
  const Summary summary = summarize(second.samples);
  EXPECT_EQ(summary.num_right, 6);
  EXPECT_EQ(summary.num_failed, 0);
  EXPECT_EQ(second.completion_tokens, 20);
}

TEST_F(Runner, AnInterruptKeepsWhatIsThereAndResumeAsksTheRest) {
  const Task task = counting_task(50);
  AnsweringServer server([&](std::string_view prompt, int64_t idx) -> ModelAnswer {
    if (idx == 10) stop_ = true;
    return {.text = last_word(prompt)};
  });
  RunnerOptions one = options(server);
  one.parallel = 1;
  SampleFile samples = file("s.jsonl", task);
  const RunResult first = run(task, one, samples);
  EXPECT_TRUE(first.interrupted);
  EXPECT_LT(first.samples.size(), 50u);
  EXPECT_GE(first.samples.size(), 10u);
  stop_ = false;
  const RunResult second = run(task, one, samples, read_earlier_samples(samples.path()));
  EXPECT_FALSE(second.interrupted);
  EXPECT_EQ(summarize(second.samples).num_right, 50);
  EXPECT_LE(server.asked().size(), 52u);
}

TEST_F(Runner, WarmsTheCommonPrefixOfPlainTextOnce) {
  const Task task = counting_task(3);
  AnsweringServer server(
      [](std::string_view prompt, int64_t) -> ModelAnswer { return {.text = last_word(prompt)}; });
  RunnerOptions plain = options(server);
  plain.request.api = Api::kGenerate;
  plain.request.max_tokens = 99;
  plain.request.stop = {"Question"};
  SampleFile samples = file("s.jsonl", task);
  EXPECT_EQ(summarize(run(task, plain, samples).samples).num_right, 3);
  const std::vector<json::Value> asked = server.asked();
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_EQ(asked[0].find("text")->as_string(), task.common_prefix);
  EXPECT_EQ(asked[0].find("sampling_params")->find("max_new_tokens")->as_integer(), 0);
  const json::Value& sampling = *asked[1].find("sampling_params");
  EXPECT_EQ(json::dump(sampling),
            R"({"temperature":0.0,"max_new_tokens":99,"stop":["Question"],)"
            R"("skip_special_tokens":true,"spaces_between_special_tokens":true})");
}

TEST_F(Runner, AGraderThatCannotWorkEndsTheRun) {
  Task task = counting_task(20);
  task.grade = [](size_t, std::string_view) -> Verdict { throw_error("no python3"); };
  AnsweringServer server([](std::string_view, int64_t) -> ModelAnswer { return {.text = "1"}; });
  SampleFile samples = file("s.jsonl", task);
  EXPECT_EQ(testing::error_of([&] { run(task, options(server), samples); }), "no python3");
}

TEST_F(Runner, AsksForTheModelsName) {
  AnsweringServer server([](std::string_view, int64_t) -> ModelAnswer { return {}; });
  const bench::Url url = bench::parse_url(server.url()).value();
  EXPECT_EQ(ask_model_name(url, {}, Api::kChat), "stub/model");
  EXPECT_EQ(ask_model_name(url, {}, Api::kGenerate), "stub/model");
  bench::Url nowhere = url;
  nowhere.port = 1;
  testing::expect_says(testing::error_of([&] { ask_model_name(nowhere, {}, Api::kChat); }),
                       {"/v1/models"});
}

TEST(RequestBody, ThinkingModesAndLimits) {
  RequestSettings settings;
  settings.model = "m";
  settings.max_tokens = 128000;
  settings.chat_template_kwargs = thinking_kwargs("glm-45");
  EXPECT_EQ(json::dump(request_body(settings, "hi", 0)),
            R"({"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.0,)"
            R"("top_p":1.0,"max_tokens":128000,"chat_template_kwargs":{"enable_thinking":true}})");
  EXPECT_EQ(json::dump(thinking_kwargs("kimi-k2")), R"({"thinking":true})");
  EXPECT_EQ(json::dump(thinking_kwargs("deepseek-v3")), R"({"thinking":true})");
  EXPECT_EQ(json::dump(thinking_kwargs("qwen-3")), R"({"enable_thinking":true})");
  testing::expect_says(testing::error_of([] { thinking_kwargs("gpt"); }),
                       {"--thinking-mode gpt", "glm-45"});
}

}  // namespace
}  // namespace winnow::eval
