// Several threads at the engine at once, with the executor that checks every page.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "testing/collecting_sink.h"
#include "testing/kv_checking_executor.h"

namespace winnow::engine {
namespace {

using ::winnow::testing::CollectingSink;
using ::winnow::testing::expected_answer;
using ::winnow::testing::KvCheckingExecutor;
using ::winnow::testing::KvCheckOptions;

EngineOptions tight_options() {
  EngineOptions options;
  options.page_size = 4;
  options.num_pages = 48;
  options.context_length = 100;
  options.max_running_requests = 7;
  options.chunked_prefill_size = 9;
  options.max_queued_requests = 10000;
  return options;
}

GenerateRequest random_request(std::mt19937& random, std::string rid) {
  GenerateRequest request;
  request.rid = std::move(rid);
  const auto length = static_cast<int32_t>(1 + random() % 60);
  const auto shared = static_cast<int32_t>(random() % 60);
  for (int32_t i = 0; i < length; ++i) {
    request.prompt_ids.push_back(i < shared ? i % 13 : static_cast<int32_t>(random() % 3));
  }
  request.sampling.max_new_tokens = static_cast<int64_t>(random() % 40);
  request.sampling.ignore_eos = random() % 2 == 0;
  return request;
}

struct Sent {
  GenerateRequest request;
  std::shared_ptr<CollectingSink> sink = std::make_shared<CollectingSink>();
  bool was_ended = false;
};

// One client thread: submits, and ends some of its requests at odd moments.
std::vector<Sent> be_client(Engine& engine, uint32_t client, int num_requests) {
  std::mt19937 random(client);
  std::vector<Sent> sent;
  for (int i = 0; i < num_requests; ++i) {
    Sent s{random_request(random, fmt::format("{}-{}", client, i))};
    const Status status = engine.submit(s.request, s.sink);
    EXPECT_TRUE(status.ok()) << status.message;
    sent.push_back(std::move(s));
    Sent& victim = sent[random() % sent.size()];
    const auto what = random() % 8;
    if (what < 2) victim.was_ended = true;
    if (what == 0) engine.cancel(victim.request.rid);
    if (what == 1) engine.finish(victim.request.rid);
    if (what == 2) engine.stats();
    if (what == 3) sent.front().sink->wait();
    if (what == 4 && i % 16 == 0) engine.flush_cache(0, [](const Status&) {});
  }
  return sent;
}

void check_answers(const std::vector<Sent>& all) {
  for (const Sent& s : all) {
    const TokenEvent answer = s.sink->wait();
    ASSERT_NE(answer.finish, FinishReason::kNone) << s.request.rid;
    EXPECT_EQ(s.sink->num_late_events(), 0);
    const auto room = static_cast<int64_t>(100 - s.request.prompt_ids.size());
    const auto expected = expected_answer(KvCheckOptions{}, s.request,
                                          std::min(s.request.sampling.max_new_tokens, room));
    ASSERT_LE(answer.ids.size(), expected.size());
    EXPECT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), expected.begin()));
    EXPECT_TRUE(s.was_ended || answer.ids.size() == expected.size()) << s.request.rid;
  }
}

// Fault B103: cancels from any thread at any moment; everyone else gets the right answer.
TEST(EngineThreads, ClientsThatComeAndGo) {
  SteadyClock clock;
  const EngineOptions options = tight_options();
  auto owned = std::make_unique<KvCheckingExecutor>(options, KvCheckOptions{});
  KvCheckingExecutor* executor = owned.get();
  Engine engine(options, std::move(owned), clock);
  constexpr int kClients = 4;
  constexpr int kRequests = 150;
  std::vector<std::vector<Sent>> sent(kClients);
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      sent[static_cast<size_t>(c)] = be_client(engine, static_cast<uint32_t>(c), kRequests);
    });
  }
  for (auto& client : clients) client.join();
  for (const auto& s : sent) check_answers(s);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.num_running, 0);
  EXPECT_EQ(stats.num_queued, 0);
  EXPECT_EQ(stats.free_pages + stats.cached_pages, stats.total_pages);
  EXPECT_EQ(
      stats.finished_stop + stats.finished_length + stats.finished_abort + stats.finished_error,
      kClients * kRequests);
  EXPECT_EQ(stats.finished_error, 0);
  EXPECT_GT(stats.preemptions, 0);
  engine.stop(0);
  EXPECT_EQ(executor->fault(), "");
}

TEST(EngineThreads, StopWhileClientsSubmit) {
  for (int round = 0; round < 10; ++round) {
    SteadyClock clock;
    const EngineOptions options = tight_options();
    Engine engine(options, std::make_unique<KvCheckingExecutor>(options, KvCheckOptions{}), clock);
    std::atomic<bool> refused = false;
    std::vector<Sent> accepted;
    std::thread client([&] {
      std::mt19937 random(7);
      for (int i = 0; !refused; ++i) {
        Sent s{random_request(random, std::to_string(i))};
        if (engine.submit(s.request, s.sink).ok()) {
          accepted.push_back(std::move(s));
        } else {
          refused = true;
        }
      }
    });
    while (engine.stats().generated_tokens == 0) std::this_thread::yield();
    std::thread second([&] { engine.stop(0); });
    engine.stop(round % 2 == 0 ? 0 : 1'000'000);
    second.join();
    client.join();
    for (const Sent& s : accepted) EXPECT_TRUE(s.sink->ended());
  }
}

}  // namespace
}  // namespace winnow::engine
