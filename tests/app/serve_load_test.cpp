// The whole server with a model under a thousand streams and five hundred disconnects.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <random>
#include <thread>

#include "base/open_files.h"
#include "testing/child_process.h"
#include "testing/made_model.h"
#include "testing/stream_group.h"

namespace winnow {
namespace {

using testing::ChildProcess;
using testing::request_text;
using testing::StreamGroup;

constexpr int kStreams = 1000;
constexpr int kTokens = 4;
constexpr int kDisconnects = 500;

class ServeLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::made_model().empty()) GTEST_SKIP() << "no python3 to make a model with";
    raise_open_file_limit();
    server_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{WINNOW_PROGRAM, "serve", "--model-path", testing::made_model(),
                                 "--port", "0", "--max-total-tokens", "32768"});
    ASSERT_TRUE(server_->wait_for("ready to roll!")) << server_->output();
    const std::string_view mark = "listening on http://127.0.0.1:";
    port_ = std::stoi(server_->output().substr(server_->output().find(mark) + mark.size()));
  }

  static std::string request(int max_tokens) {
    return request_text("POST", "/v1/completions",
                        fmt::format(R"({{"prompt":"Once upon a time","stream":true,
                                        "ignore_eos":true,"max_tokens":{}}})",
                                    max_tokens));
  }

  // Nothing runs or waits, and every page is free or evictable.
  bool quiet() {
    for (int i = 0; i < 6000; ++i) {
      const json::Value info = testing::http_get(port_, "/server_info").json();
      const json::Value& state = info.find("internal_states")->as_array()[0];
      auto number = [&](const char* key) { return state.find(key)->as_integer(); };
      if (number("num_running_reqs") == 0 && number("num_queue_reqs") == 0 &&
          number("live_requests") == 0 &&
          number("kv_available_tokens") + number("kv_evictable_tokens") ==
              state.find("memory_usage")->find("token_capacity")->as_integer()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::unique_ptr<ChildProcess> server_;
  int port_ = 0;
};

TEST_F(ServeLoad, AThousandStreamsThenFiveHundredDisconnects) {
  StreamGroup streams(port_, kStreams, request(kTokens));
  ASSERT_TRUE(streams.read_all());
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_TRUE(streams.done(i)) << streams.received(i);
    EXPECT_NE(streams.received(i).find("\"finish_reason\":\"length\""), std::string::npos);
  }
  EXPECT_TRUE(quiet());

  StreamGroup leavers(port_, kDisconnects, request(2000));
  std::mt19937 random(7);
  std::vector<int> order(kDisconnects);
  for (int i = 0; i < kDisconnects; ++i) order[static_cast<size_t>(i)] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const int idx : order) {
    leavers.close(idx);
    if (random() % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(quiet());
  EXPECT_EQ(testing::http_get(port_, "/health").status, 200);
  server_->signal(SIGTERM);
  EXPECT_EQ(server_->wait(), 0) << server_->output();
}

}  // namespace
}  // namespace winnow
