// winnow serve and winnow generate as a user runs them, with a small random model.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/json.h"
#include "testing/child_process.h"
#include "testing/http_client.h"
#include "testing/made_model.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

using testing::ChildProcess;
using testing::HttpConnection;
using testing::request_text;

class Serve : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::made_model().empty()) GTEST_SKIP() << "no python3 to make a model with";
  }

  static std::vector<std::string> arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {WINNOW_PROGRAM,
                                     "serve",
                                     "--model-path",
                                     testing::made_model(),
                                     "--port",
                                     "0",
                                     "--threads",
                                     "1",
                                     "--max-total-tokens",
                                     "4096"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  static int port_of(const ChildProcess& server) {
    const std::string_view mark = "listening on http://127.0.0.1:";
    const size_t at = server.output().find(mark);
    return std::stoi(server.output().substr(at + mark.size()));
  }

  // Fails to start: the one line it says.
  static std::string refusal(std::vector<std::string> more) {
    ChildProcess server(arguments(std::move(more)));
    EXPECT_EQ(server.wait(), 1) << server.output();
    return server.output();
  }
};

TEST_F(Serve, AnswersAndEndsWithZeroOnSigterm) {
  ChildProcess server(arguments({"--reasoning-p", "glm45", "--served-model-name", "tiny"}));
  ASSERT_TRUE(server.wait_for("ready to roll!")) << server.output();
  const int port = port_of(server);
  EXPECT_EQ(testing::http_get(port, "/health").status, 200);
  const json::Value models = testing::http_get(port, "/v1/models").json();
  EXPECT_EQ(models.find("data")->as_array()[0].find("id")->as_string(), "tiny");
  HttpConnection connection(port);
  connection.send(request_text(
      "POST", "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":3,"stream":true})"));
  const auto reply = connection.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.events().back(), "[DONE]");
  const json::Value info = testing::http_get(port, "/server_info").json();
  EXPECT_EQ(info.find("reasoning_parser")->as_string(), "glm45");
  EXPECT_EQ(info.find("port")->as_integer(), port);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

TEST_F(Serve, LetsRunningRequestsFinishWhenAskedToStop) {
  ChildProcess server(arguments());
  ASSERT_TRUE(server.wait_for("ready to roll!")) << server.output();
  HttpConnection connection(port_of(server));
  connection.send(request_text("POST", "/generate",
                               R"({"text":"Hi","stream":true,"sampling_params":
                                   {"max_new_tokens":60,"ignore_eos":true}})"));
  ASSERT_TRUE(connection.read_until("data: "));
  server.signal(SIGINT);
  const auto reply = connection.read_reply();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.events().back(), "[DONE]");
  EXPECT_NE(reply.body.find("\"length\":60"), std::string::npos);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

TEST_F(Serve, CutsOffWhatRunsTooLong) {
  ChildProcess server(arguments({"--drain-timeout", "0.2"}));
  ASSERT_TRUE(server.wait_for("ready to roll!")) << server.output();
  HttpConnection connection(port_of(server));
  connection.send(request_text("POST", "/generate",
                               R"({"text":"Hi","stream":true,"sampling_params":
                                   {"max_new_tokens":4000,"ignore_eos":true}})"));
  ASSERT_TRUE(connection.read_until("data: "));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
  const auto reply = connection.read_reply();
  EXPECT_NE(reply.body.find("\"type\":\"abort\""), std::string::npos) << reply.body.substr(0, 300);
}

TEST_F(Serve, RefusesWhatCannotWork) {
  EXPECT_NE(refusal({"--tp", "8"}).find("--tp 8"), std::string::npos);
  EXPECT_NE(refusal({"--dp", "2"}).find("--dp 2"), std::string::npos);
  EXPECT_NE(refusal({"--prot", "1"}).find("did you mean --port"), std::string::npos);
  EXPECT_NE(refusal({"--max", "1"}).find("--max-running-requests"), std::string::npos);
  EXPECT_NE(refusal({"--port", "99999"}).find("65535"), std::string::npos);
  EXPECT_NE(refusal({"--kv-cache-dtype", "int3"}).find("fp8_e4m3"), std::string::npos);
  EXPECT_NE(refusal({"--reasoning-parser", "x"}).find("glm45"), std::string::npos);
  EXPECT_NE(refusal({"--tool-call-parser", "x"}).find("glm47"), std::string::npos);
  EXPECT_NE(refusal({"--context-length", "99999999"}).find("positions"), std::string::npos);
  EXPECT_NE(refusal({"--config", "/nowhere.json"}).find("/nowhere.json"), std::string::npos);
  EXPECT_NE(refusal({"--model-path", "/nowhere"}).find("/nowhere"), std::string::npos);
  EXPECT_NE(refusal({"--host", "300.1.1.1"}).find("300.1.1.1"), std::string::npos);
}

TEST_F(Serve, NamesThePairsOfBackendsThatWork) {
  const std::string mixed = refusal({"--kv-cache-dtype", "fp8_e4m3", "--nsa-prefill-backend",
                                     "trtllm", "--nsa-decode-backend", "flashmla_kv"});
  EXPECT_NE(mixed.find("flashmla_sparse + flashmla_kv"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("trtllm + trtllm"), std::string::npos) << mixed;
  const std::string bf16 =
      refusal({"--kv-cache-dtype", "bfloat16", "--dsa-decode-backend", "flashmla_kv"});
  EXPECT_NE(bf16.find("flashmla_sparse + flashmla_sparse"), std::string::npos) << bf16;
}

TEST_F(Serve, ReadsAConfigFileBelowTheCommandLine) {
  const testing::TempFolder folder;
  const std::string config = folder.write(
      "serve.json",
      R"({"served_model_name":"from-file","weight-version":"7","enable-cache-report":true})");
  ChildProcess server(arguments({"--config", config, "--weight-version", "8"}));
  ASSERT_TRUE(server.wait_for("ready to roll!")) << server.output();
  const json::Value info = testing::http_get(port_of(server), "/server_info").json();
  EXPECT_EQ(info.find("served_model_name")->as_string(), "from-file");
  EXPECT_EQ(info.find("weight_version")->as_string(), "8");
  EXPECT_TRUE(info.find("enable_cache_report")->as_bool());
  const std::string bad = folder.write("bad.json", R"({"prot":1})");
  EXPECT_NE(refusal({"--config", bad}).find("prot"), std::string::npos);
}

TEST_F(Serve, APortInUseShowsBeforeTheModelIsRead) {
  ChildProcess first(arguments());
  ASSERT_TRUE(first.wait_for("ready to roll!")) << first.output();
  const std::string said = refusal({"--port", std::to_string(port_of(first))});
  EXPECT_NE(said.find("cannot listen"), std::string::npos) << said;
  EXPECT_EQ(said.find("Loading"), std::string::npos) << said;
}

TEST(ServeOptions, TheDocumentIsWhatTheTableSays) {
  const auto printed = testing::run_program(std::string(WINNOW_PROGRAM) + " serve --help-markdown");
  EXPECT_EQ(printed.exit_code, 0);
  std::ifstream file(WINNOW_SOURCE_DIR "/docs/options.md");
  const std::string written((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
  EXPECT_EQ(printed.output, written) << "winnow serve --help-markdown > docs/options.md";
}

class Generate : public Serve {
 protected:
  static json::Value generate(const std::string& more) {
    const auto result = testing::run_program(
        fmt::format("{} generate --model-path {} --json --temp 0 --max-new 5 --threads 1 "
                    "--max-total-tokens 1024 {}",
                    WINNOW_PROGRAM, testing::made_model(), more));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    auto parsed = json::parse(result.output.substr(result.output.find('{')));
    EXPECT_TRUE(parsed.ok()) << result.output;
    return parsed.ok() ? parsed.value() : json::Value();
  }
};

TEST_F(Generate, PromptAndChat) {
  const json::Value prompt = generate("--prompt Hello");
  EXPECT_EQ(prompt.find("completion_tokens")->as_integer(), 5);
  EXPECT_EQ(prompt.find("output_ids")->as_array().size(), 5u);
  EXPECT_EQ(prompt, [&] {
    json::Value again = generate("--prompt Hello");
    again.set("seconds", *prompt.find("seconds"));
    return again;
  }());
  const json::Value chat = generate("--chat Hello --system Short.");
  EXPECT_GT(chat.find("prompt_tokens")->as_integer(), prompt.find("prompt_tokens")->as_integer());
  const auto streamed = testing::run_program(
      fmt::format("{} generate --model-path {} --prompt Hello --temp 0 --max-new 5 --threads 1 "
                  "--max-total-tokens 1024 2>/dev/null",
                  WINNOW_PROGRAM, testing::made_model()));
  EXPECT_EQ(streamed.output, prompt.find("text")->as_string() + "\n");
  EXPECT_EQ(testing::run_program(
                fmt::format("{} generate --model-path {}", WINNOW_PROGRAM, testing::made_model()))
                .exit_code,
            1);
}

TEST_F(Generate, StopStrings) {
  const json::Value whole = generate("--prompt Hello");
  const std::string text = whole.find("text")->as_string();
  size_t last = text.size();
  do --last;
  while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xc0) == 0x80);
  ASSERT_GT(last, 0u) << text;
  const std::string stop = text.substr(last), until = text.substr(0, text.find(stop));
  const testing::TempFolder folder;
  const auto config = folder.path() + "/config.json";
  const json::Array stops = {"never said", stop};
  std::ofstream(config) << json::dump(json::Object{{"stop", stops}});
  const json::Value by_file = generate("--prompt Hello --config " + config);
  EXPECT_EQ(by_file.find("text")->as_string(), until);
  EXPECT_EQ(by_file.find("finish_reason")->as_string(), "stop");
  const std::string repeated = fmt::format("--stop 'never said' --stop '{}'", stop);
  EXPECT_EQ(generate("--prompt Hello " + repeated).find("text")->as_string(), until);
  const json::Value overridden = generate("--prompt Hello --stop 'never said' --config " + config);
  EXPECT_EQ(overridden.find("text")->as_string(), text);
}

// The reference report's two pairs, and every other name, on the CPU.
TEST_F(Generate, EveryPairOfBackendNamesThatWorks) {
  for (const char* pair :
       {"--nsa-prefill-backend flashmla_sparse --nsa-decode-backend flashmla_kv "
        "--kv-cache-dtype fp8_e4m3",
        "--dsa-prefill-backend trtllm --dsa-decode-backend trtllm --kv-cache-dtype fp8_e4m3",
        "--dsa-prefill-backend trtllm --dsa-decode-backend flashmla_sparse --kv-cache-dtype bf16",
        "--dsa-prefill-backend winnow --kv-cache-dtype fp8_e4m3", "--dsa-decode-backend winnow",
        "--dsa-decode-backend flashmla_kv", "--dsa-prefill-backend flashmla_auto",
        "--kv-cache-dtype bfloat16 --index-key-dtype bfloat16", "--precision reference"}) {
    EXPECT_EQ(
        generate(std::string("--prompt Hello ") + pair).find("completion_tokens")->as_integer(), 5)
        << pair;
  }
}

}  // namespace
}  // namespace winnow
