#include <gtest/gtest.h>

#include <thread>

#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::at;
using testing::HttpReply;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

ServingOptions named() {
  ServingOptions options;
  options.config.served_model_name = "org/name";
  options.config.model_path = "/models/x";
  options.config.tokenizer_path = "/models/x";
  options.config.launch_arguments = {{"kv_cache_dtype", "auto"}};
  return options;
}

TEST(Routes, ModelsAndInfo) {
  ServingFixture serving(text_script("x"), named());
  const json::Value models = serving.get("/v1/models").json();
  EXPECT_EQ(at(models, "object"), json::Value("list"));
  EXPECT_EQ(at(models, "data.0.id"), json::Value("org/name"));
  EXPECT_EQ(at(models, "data.0.max_model_len"), json::Value(8192));
  EXPECT_EQ(at(serving.get("/v1/models/org/name").json(), "id"), json::Value("org/name"));
  EXPECT_EQ(at(serving.get("/v1/models/org%2Fname").json(), "id"), json::Value("org/name"));
  const HttpReply missing = serving.get("/v1/models/other");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(at(missing.json(), "error.code"), json::Value("model_not_found"));
  for (const char* path : {"/model_info", "/get_model_info"}) {
    const json::Value info = serving.get(path).json();
    EXPECT_EQ(at(info, "model_path"), json::Value("/models/x"));
    EXPECT_EQ(at(info, "is_generation"), json::Value(true));
  }
  for (const char* path : {"/server_info", "/get_server_info"}) {
    const json::Value info = serving.get(path).json();
    EXPECT_EQ(at(info, "kv_cache_dtype"), json::Value("auto"));
    EXPECT_EQ(at(info, "status"), json::Value("ready"));
    EXPECT_EQ(at(info, "max_total_num_tokens"), json::Value(4096 * 16));
    EXPECT_EQ(at(info, "internal_states").as_array().size(), 1u);
  }
}

TEST(Routes, TokenizeAndBack) {
  ServingFixture serving(text_script("x"));
  for (const char* path : {"/tokenize", "/v1/tokenize"}) {
    const json::Value one = serving.post(path, R"({"prompt":"Hi<think>"})").json();
    EXPECT_EQ(at(one, "tokens"), json::Value(json::Array{72, 105, 259}));
    EXPECT_EQ(at(one, "count"), json::Value(3));
    EXPECT_EQ(at(one, "max_model_len"), json::Value(8192));
    const json::Value many = serving.post(path, R"({"prompt":["a","bc"]})").json();
    EXPECT_EQ(at(many, "tokens.1"), json::Value(json::Array{98, 99}));
    EXPECT_EQ(at(many, "count"), json::Value(json::Array{1, 2}));
    const json::Value chat =
        serving.post(path, R"({"messages":[{"role":"user","content":"<|user|>"}]})").json();
    EXPECT_EQ(at(chat, "count"), json::Value(16)) << "a control token in content is plain text";
    EXPECT_EQ(serving.post(path, "{}").status, 400);
    EXPECT_EQ(serving.post(path, R"({"prompt":"a","messages":[]})").status, 400);
  }
  for (const char* path : {"/detokenize", "/v1/detokenize"}) {
    EXPECT_EQ(at(serving.post(path, R"({"tokens":[72,105,256]})").json(), "text"),
              json::Value("Hi"));
    EXPECT_EQ(
        at(serving.post(path, R"({"tokens":[72,256],"skip_special_tokens":false})").json(), "text"),
        json::Value("H<|end|>"));
    EXPECT_EQ(at(serving.post(path, R"({"tokens":[[72],[]]})").json(), "text"),
              json::Value(json::Array{"H", ""}));
    EXPECT_EQ(at(serving.post(path, R"({"tokens":[]})").json(), "text"), json::Value(""));
    EXPECT_EQ(serving.post(path, R"({"tokens":["a"]})").status, 400);
    EXPECT_EQ(serving.post(path, R"({"tokens":[99999]})").status, 400);
    EXPECT_EQ(serving.post(path, "{}").status, 400);
  }
}

TEST(Routes, UnknownPathsAndWrongMethods) {
  ServingFixture serving(text_script("x"));
  const HttpReply unknown = serving.get("/nothing");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_TRUE(at(unknown.json(), "error.message").is_string());
  const HttpReply wrong = serving.get("/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST");
  EXPECT_TRUE(at(wrong.json(), "error.message").is_string());
  EXPECT_EQ(serving.post("/health", "{}").status, 405);
  testing::HttpConnection connection(serving.port());
  connection.send(testing::request_text("HEAD", "/v1/models", ""));
  EXPECT_EQ(connection.read_reply(true).status, 200);
  connection.send(testing::request_text("DELETE", "/v1/models", ""));
  EXPECT_EQ(connection.read_reply().status, 405);
}

TEST(Routes, CorsPreflight) {
  ServingOptions options;
  options.config.api_key = "secret";
  ServingFixture serving(text_script("x"), options);
  testing::HttpConnection connection(serving.port());
  connection.send(testing::request_text("OPTIONS", "/v1/chat/completions", "",
                                        "origin: http://x\r\naccess-control-request-headers: "
                                        "authorization, content-type\r\n"));
  const HttpReply reply = connection.read_reply();
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "*");
  EXPECT_EQ(reply.headers.at("access-control-allow-headers"), "authorization, content-type");
}

TEST(Routes, ApiKeys) {
  ServingOptions options;
  options.config.api_key = "secret";
  options.config.admin_api_key = "boss";
  ServingFixture serving(text_script("x"), options);
  EXPECT_EQ(serving.get("/v1/models").status, 401);
  EXPECT_EQ(serving.get("/nothing").status, 401);
  EXPECT_EQ(serving.get("/v1/models", "authorization: Bearer wrong!\r\n").status, 401);
  EXPECT_EQ(serving.get("/v1/models", "authorization: Bearer secre\r\n").status, 401);
  EXPECT_EQ(serving.get("/v1/models", "authorization: bearer secret\r\n").status, 200);
  EXPECT_EQ(serving.get("/v1/models", "x-api-key: secret\r\n").status, 200);
  EXPECT_EQ(serving.get("/server_info", "x-api-key: secret\r\n").status, 401);
  EXPECT_EQ(serving.get("/server_info", "x-api-key: boss\r\n").status, 200);
  for (const char* open : {"/health", "/health_generate", "/metrics"}) {
    EXPECT_EQ(serving.get(open).status, 200) << open;
  }
}

TEST(Routes, HealthFollowsTheServersState) {
  ServingFixture serving(text_script("x"));
  EXPECT_EQ(serving.get("/health").status, 200);
  EXPECT_EQ(serving.get("/health_generate").status, 200);
  for (const auto state : {server::ServerState::kStarting, server::ServerState::kDraining}) {
    serving.api().state = state;
    EXPECT_EQ(serving.get("/health").status, 503);
    EXPECT_EQ(serving.get("/health_generate").status, 503);
    EXPECT_EQ(serving.post("/generate", R"({"text":"x"})").status, 503);
    EXPECT_EQ(serving.get("/v1/models").status, 200);
  }
  serving.api().state = server::ServerState::kReady;
  EXPECT_EQ(serving.post("/generate", R"({"text":"x"})").status, 200);
  EXPECT_TRUE(serving.quiet());
}

// B110: a step that takes long is no sign of death, and the cheap routes do not wait for it.
TEST(Routes, HealthAndMetricsAnswerDuringALongStep) {
  ServingFixture serving(text_script("x"));
  serving.executor().stall();
  testing::HttpConnection busy(serving.port());
  busy.send(testing::request_text("POST", "/generate", R"({"text":"x"})"));
  ASSERT_TRUE(testing::eventually([&] { return serving.api().live.size() == 1; }));
  std::vector<std::unique_ptr<testing::HttpConnection>> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(std::make_unique<testing::HttpConnection>(serving.port()));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(serving.get("/health").status, 200);
    EXPECT_EQ(serving.get("/metrics").status, 200);
  }
  serving.executor().release();
  EXPECT_EQ(busy.read_reply().status, 200);
}

TEST(Routes, AStepBeyondTheWatchdogIsUnhealthy) {
  ServingOptions options;
  options.config.watchdog_ns = 20'000'000;
  ServingFixture serving(text_script("x"), options);
  serving.executor().stall();
  testing::HttpConnection busy(serving.port());
  busy.send(testing::request_text("POST", "/generate", R"({"text":"x"})"));
  EXPECT_TRUE(testing::eventually([&] { return serving.get("/health").status == 503; }));
}

TEST(Routes, FlushCacheActsWhenIdleOnly) {
  ServingFixture serving(text_script("x"));
  const std::string prompt = fmt::format(R"({{"text":"{}"}})", std::string(64, 'p'));
  EXPECT_EQ(serving.post("/generate", prompt).status, 200);
  EXPECT_TRUE(serving.quiet());
  EXPECT_GT(serving.engine().stats().cached_pages, 0);
  EXPECT_EQ(serving.post("/flush_cache", "").status, 200);
  EXPECT_TRUE(testing::eventually([&] { return serving.engine().stats().cached_pages == 0; }));
  serving.executor().set_step_delay_ns(1'000'000);
  testing::HttpConnection busy(serving.port());
  busy.send(testing::request_text(
      "POST", "/generate",
      R"({"text":"x","sampling_params":{"max_new_tokens":200,"ignore_eos":true}})"));
  ASSERT_TRUE(testing::eventually([&] { return serving.engine().stats().num_running == 1; }));
  EXPECT_EQ(serving.get("/flush_cache").status, 400);
  // Those that wait hold no worker: the next request is taken.
  std::vector<std::unique_ptr<testing::HttpConnection>> waiting;
  for (int i = 0; i < 8; ++i) {
    auto& connection =
        *waiting.emplace_back(std::make_unique<testing::HttpConnection>(serving.port()));
    connection.send(testing::request_text("GET", "/flush_cache?timeout=50", ""));
  }
  EXPECT_EQ(serving.post("/tokenize", R"({"prompt":"ab"})").status, 200);
  EXPECT_EQ(serving.engine().stats().num_running, 1);
  for (auto& connection : waiting) EXPECT_EQ(connection->read_reply().status, 200);
  EXPECT_EQ(busy.read_reply().status, 200);
}

TEST(Routes, AbortByExactRidOrAll) {
  ServingFixture serving(text_script(std::string(4000, 'x')));
  serving.executor().set_step_delay_ns(1'000'000);
  auto start = [&](std::string_view rid, std::string_view more) {
    auto connection = std::make_unique<testing::HttpConnection>(serving.port());
    connection->send(testing::request_text(
        "POST", "/generate",
        fmt::format(R"({{"text":"x","rid":"{}","sampling_params":{{"max_new_tokens":4000{}}}}})",
                    rid, more)));
    return connection;
  };
  auto one = start("req_1", "");
  auto ten = start("req_10", "");
  auto batch = start("many", R"(,"n":2)");
  ASSERT_TRUE(testing::eventually([&] { return serving.engine().stats().num_running == 4; }));
  EXPECT_EQ(serving.post("/abort_request", R"({"rid":"req_1"})").status, 200);
  const json::Value ended = one->read_reply().json();
  EXPECT_EQ(at(ended, "meta_info.finish_reason.type"), json::Value("abort"));
  EXPECT_EQ(serving.engine().stats().num_running, 3);
  EXPECT_EQ(serving.post("/abort_request", R"({"rid":"many"})").status, 200);
  EXPECT_EQ(batch->read_reply().json().as_array().size(), 2u);
  EXPECT_EQ(serving.post("/abort_request", R"({"rid":"unknown"})").status, 200);
  EXPECT_EQ(serving.post("/abort_request", R"({})").status, 400);
  EXPECT_EQ(serving.post("/abort_request", R"({"abort_all":true})").status, 200);
  EXPECT_EQ(ten->read_reply().status, 200);
  EXPECT_TRUE(serving.quiet());
}

TEST(Routes, V1NeedsAJsonContentType) {
  ServingFixture serving(text_script("x"));
  const char* body = R"({"prompt":"x"})";
  const HttpReply plain = serving.post("/v1/completions", body, "content-type: text/plain\r\n");
  EXPECT_EQ(plain.status, 400);
  EXPECT_EQ(at(plain.json(), "param"), json::Value("content-type"));
  EXPECT_EQ(
      serving.post("/v1/completions", body, "content-type: Application/JSON; charset=utf-8\r\n")
          .status,
      200);
  EXPECT_EQ(serving.post("/generate", R"({"text":"x"})", "content-type: text/plain\r\n").status,
            200);
}

TEST(Routes, WhileTheModelLoadsEverythingIs503) {
  server::HttpServer http(
      {.port = 0}, [](server::HttpRequest request, std::shared_ptr<server::Exchange> exchange) {
        server::answer_while_starting(request, *exchange);
      });
  http.start();
  for (const char* path : {"/health", "/v1/models", "/metrics"}) {
    EXPECT_EQ(testing::http_get(http.port(), path).status, 503);
  }
}

}  // namespace
}  // namespace winnow
