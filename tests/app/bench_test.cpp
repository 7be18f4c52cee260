// The reference report's lines with winnow in front, against winnow serve with a small random
// model, at small counts.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "base/json.h"
#include "testing/child_process.h"
#include "testing/made_model.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

using testing::ChildProcess;
using testing::run_program;

class Bench : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (testing::made_model().empty()) return;
    server_ = new ChildProcess({WINNOW_PROGRAM, "serve", "--model-path", testing::made_model(),
                                "--port", "0", "--threads", "1", "--max-total-tokens", "8192",
                                "--reasoning-parser", "glm45", "--enable-cache-report"});
    ASSERT_TRUE(server_->wait_for("ready to roll!")) << server_->output();
    const std::string_view mark = "listening on http://127.0.0.1:";
    port_ = std::stoi(server_->output().substr(server_->output().find(mark) + mark.size()));
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }

  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "no python3 to make a model with";
  }

  // In a folder of its own: a run leaves its line of JSON where it is.
  testing::ProgramResult bench(const std::string& arguments) const {
    return run_program(fmt::format("cd {} && {} bench {} --port {}", folder_.path(), WINNOW_PROGRAM,
                                   arguments, port_));
  }

  json::Value line_of(const std::string& name) const {
    std::ifstream file(folder_.file(name));
    std::string line;
    EXPECT_TRUE(std::getline(file, line)) << name;
    auto parsed = json::parse(line);
    EXPECT_TRUE(parsed.ok()) << line;
    return parsed.ok() ? parsed.value() : json::Value(json::Object{});
  }

  static inline ChildProcess* server_ = nullptr;
  static inline int port_ = 0;
  testing::TempFolder folder_;
};

TEST_F(Bench, One) {
  const auto result = bench("one --max-new-tokens 8 --warmup 1 --repeat 2");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("| Latency (s) | Tokens | Acc Length | Speed (token/s) |"),
            std::string::npos)
      << result.output;
  const auto streamed = bench("one --max-new-tokens 8 --stream --batch-size 1");
  EXPECT_EQ(streamed.exit_code, 0) << streamed.output;
}

TEST_F(Bench, OneFailsWithAWord) {
  const auto result = bench("one --max-new-tokens 900000");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("HTTP 400"), std::string::npos) << result.output;
  EXPECT_EQ(run_program(std::string(WINNOW_PROGRAM) + " bench one --port 1").exit_code, 1);
}

TEST_F(Bench, Serving) {
  const auto result = bench(
      "serving --backend sglang --host 127.0.0.1 --num-prompts 8 --dataset-name random "
      "--random-input 48 --random-output 6 --random-range-ratio 1.0 --max-concurrency 4 "
      "--output-file run.jsonl --plot run.svg --flush-cache --output-details");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* part :
       {"#Input tokens: 384", "============ Serving Benchmark Result ============",
        "Successful requests:                     8 ",
        "Total input tokens:                      384 ",
        "Total generated tokens:                  48 ", "Mean TTFT (ms):", "P99 ITL (ms):"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  }
  const json::Value line = line_of("run.jsonl");
  EXPECT_EQ(line.find("completed")->as_integer(), 8);
  EXPECT_EQ(line.find("failed")->as_integer(), 0);
  EXPECT_EQ(line.find("total_output_tokens")->as_integer(), 48);
  EXPECT_LE(line.find("peak_concurrent_requests")->as_integer(), 4);
  // A gap a token after the first event. Native events are cumulative: one that still waits to be
  // sent gives way to the next, so that the first to arrive may hold several tokens.
  const size_t gaps = line.find("itls")->as_array()[0].as_array().size();
  EXPECT_TRUE(gaps >= 1 && gaps <= 5) << gaps;
  std::ifstream plot(folder_.file("run.svg"));
  std::string first;
  std::getline(plot, first);
  EXPECT_TRUE(first.starts_with("<svg")) << first;
}

// B121: the second run of the same command is told to be warm.
TEST_F(Bench, ServingTwiceIsWarm) {
  const std::string arguments =
      "serving --num-prompts 4 --dataset-name random --random-input 130 --random-output 2 "
      "--random-range-ratio 1 --seed 7 --output-file warm.jsonl --warmup-requests 0";
  EXPECT_EQ(bench(arguments).exit_code, 0);
  const auto again = bench(arguments);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.output.find("prefix cache answered"), std::string::npos) << again.output;
}

TEST_F(Bench, EveryApiGivesTheSameCounts) {
  for (const char* backend : {"winnow", "sglang-oai", "sglang-oai-chat", "openai", "openai-chat"}) {
    const std::string tokenizer =
        std::string(backend).starts_with("openai") ? "--tokenizer " + testing::made_model() : "";
    const auto result = bench(
        fmt::format("serving --backend {} --num-prompts 3 --dataset-name random --random-input 20 "
                    "--random-output 5 --random-range-ratio 1 --output-file {}.jsonl {}",
                    backend, backend, tokenizer));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const json::Value line = line_of(std::string(backend) + ".jsonl");
    EXPECT_EQ(line.find("total_output_tokens")->as_integer(), 15) << backend;
    EXPECT_EQ(line.find("failed")->as_integer(), 0) << backend;
    EXPECT_GT(line.find("mean_ttft_ms")->as_number(), 0) << backend;
  }
}

TEST_F(Bench, ConversationsBehindSharedPrefixes) {
  const auto result = bench(
      "serving --backend sglang-oai-chat --dataset-name generated-shared-prefix --gsp-num-groups 2 "
      "--gsp-prompts-per-group 2 --gsp-system-prompt-len 30 --gsp-question-len 5 --gsp-output-len "
      "3 "
      "--gsp-num-turns 3 --gsp-group-distribution zipf --gsp-zipf-alpha 1 --output-file out.jsonl");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const json::Value line = line_of("out.jsonl");
  EXPECT_EQ(line.find("completed")->as_integer(), 12) << result.output;
  EXPECT_EQ(line.find("total_output_tokens")->as_integer(), 36);
  EXPECT_GT(line.find("cached_share")->as_number(), 0.2);
}

TEST_F(Bench, ATraceWithItsArrivals) {
  folder_.write("trace.jsonl",
                "{\"timestamp\":0,\"input_length\":20,\"output_length\":2,\"hash_ids\":[1]}\n"
                "{\"timestamp\":50,\"input_length\":30,\"output_length\":3,\"hash_ids\":[1]}\n");
  const auto result = bench(
      "serving --dataset-name trace --dataset-path trace.jsonl --use-trace-timestamps "
      "--tokenize-prompt --disable-stream --output-file trace-out.jsonl");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const json::Value line = line_of("trace-out.jsonl");
  EXPECT_EQ(line.find("request_rate")->as_string(), "trace");
  EXPECT_EQ(line.find("total_input_tokens")->as_integer(), 50);
  EXPECT_EQ(line.find("total_output_tokens")->as_integer(), 5);
}

TEST_F(Bench, Sweep) {
  const auto result = bench(
      "serving --num-prompts 4 --dataset-name random --random-input 20 --random-output 4 "
      "--sweep concurrency=1,2 --plot sweep.svg --goodput ttft:10000,tpot:10000");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("tok/s a user"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("SLO attainment (%):                      100.00"),
            std::string::npos)
      << result.output;
}

// Arrivals minutes apart: the interrupt comes long before the last.
TEST_F(Bench, AnInterruptedRunReportsWhatItHas) {
  const std::string file = folder_.file("cut.jsonl");
  ChildProcess program({WINNOW_PROGRAM, "bench", "serving", "--port", std::to_string(port_),
                        "--dataset-name", "random", "--random-input", "20", "--random-output", "4",
                        "--num-prompts", "4", "--request-rate", "0.001", "--warmup-requests", "0",
                        "--output-file", file});
  ASSERT_TRUE(program.wait_for("#Output tokens")) << program.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the first may have ended by then
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 1);
  for (const char* part :
       {"Serving Benchmark Result", "requests had ended", "winnow: interrupted"}) {
    EXPECT_NE(program.output().find(part), std::string::npos) << program.output();
  }
  EXPECT_GE(line_of("cut.jsonl").find("interrupted")->as_integer(), 3);
}

TEST_F(Bench, ServingRefusesWhatCannotWork) {
  const auto says = [&](const std::string& arguments, const char* words) {
    const auto result = bench("serving " + arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos) << result.output;
  };
  says("--backend tgi", "sglang");
  says("--dataset-name sharegpt", "--dataset-path");
  says("--goodput speed:3", "ttft:MS");
  says("--sweep batch=1", "concurrency=1,2,4");
  says("--sweep concurrency=1,1.5", "1.5 is no whole number");
  says("--num-prompts 2147483648", "--num-prompts 2147483648: expected a number between 1 and");
  says("--dataset-name random --num-prompts 1000000 --random-input 8192", "--random-input-len");
  says("--dataset-name generated-shared-prefix --gsp-num-groups 2000 --gsp-prompts 2000",
       "--gsp-num-groups");
  says("--dataset-name generated-shared-prefix --gsp-num-turns 2", "--backend winnow");
  says("--gsp-group-distribution zipf", "--gsp-zipf-alpha above 0");
  says("--gsp-zipf-alpha 1.5", "--gsp-group-distribution zipf");
  says("--base-url https://example.com", "--base-url: https://example.com: https is not spoken");
  says("--host 'a b'", "--host: ");
  says("--header 'bad name=x'", "--header bad name=x: expected NAME=VALUE");
  says("--sweep request-rate=inf", "\"inf\" is no number above 0");
  says("--output-file /nowhere/x.jsonl", "--output-file /nowhere/x.jsonl: cannot be written");
  says("--plot /", "--plot /: cannot be written");
  says("--extra-request-body [1]", "JSON object");
  says("--use-trace-timestamps", "--dataset-name trace");
  says("--backend openai --model nowhere", "--tokenizer DIR");
  says("--dataset-name random --random-input 100000 --num-prompts 1", "warm-up");
}

}  // namespace
}  // namespace winnow
