#include "engine/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testing/collecting_sink.h"
#include "testing/flush.h"
#include "testing/scripted_executor.h"

namespace winnow::engine {
namespace {

using ::winnow::testing::CollectingSink;
using ::winnow::testing::flush;
using ::winnow::testing::Script;
using ::winnow::testing::ScriptedExecutor;

constexpr int32_t kEos = 2;

EngineOptions small_options() {
  EngineOptions options;
  options.page_size = 4;
  options.num_pages = 256;
  options.context_length = 512;
  options.max_running_requests = 8;
  return options;
}

GenerateRequest request_of(const std::string& rid, int64_t max_new_tokens = 100) {
  GenerateRequest request;
  request.rid = rid;
  request.prompt_ids = {5, 6, 7, 8, 9};
  request.sampling.max_new_tokens = max_new_tokens;
  return request;
}

struct Fixture {
  SteadyClock clock;
  ScriptedExecutor* executor;
  Engine engine;

  explicit Fixture(Script script, EngineOptions options = small_options())
      : Fixture(std::make_unique<ScriptedExecutor>(std::move(script), std::vector{kEos}), options) {
  }
  Fixture(std::unique_ptr<ScriptedExecutor> e, const EngineOptions& options)
      : executor(e.get()), engine(options, std::move(e), clock) {}

  std::shared_ptr<CollectingSink> start(GenerateRequest request) {
    auto sink = std::make_shared<CollectingSink>();
    const Status status = engine.submit(std::move(request), sink);
    EXPECT_TRUE(status.ok()) << status.message;
    return sink;
  }
  TokenEvent ask(GenerateRequest request) { return start(std::move(request))->wait(); }
  std::future<Status> flush() { return testing::flush(engine); }
};

Script endless() { return {.ids = std::vector<int32_t>(100000, 50), .step_sizes = {1}}; }

TEST(Engine, DeliversTheScriptWhateverTheStepSize) {
  for (int32_t size = 1; size <= 8; ++size) {
    Fixture f(Script{{10, 11, 12, 13, 14, 15, 16, kEos, 17}, {size}});
    const TokenEvent answer = f.ask(request_of("a"));
    EXPECT_EQ(answer.ids, (std::vector<int32_t>{10, 11, 12, 13, 14, 15, 16, kEos})) << size;
    EXPECT_EQ(answer.finish, FinishReason::kStop);
    EXPECT_EQ(answer.matched_stop_id, kEos);
    EXPECT_EQ(answer.prompt_tokens, 5);
    EXPECT_EQ(answer.completion_tokens, 8);
  }
}

TEST(Engine, LogprobsComeWithTheirTokens) {
  Fixture f(Script{{10, 11, 12, 13, 14}, {3}});
  GenerateRequest request = request_of("a", 5);
  request.logprobs.output = true;
  request.logprobs.top = 2;
  request.logprobs.prompt_start = 0;
  const TokenEvent answer = f.ask(request);
  ASSERT_EQ(answer.logprobs.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(answer.logprobs[i].id, answer.ids[i]);
    EXPECT_EQ(answer.logprobs[i].top.size(), 2u);
  }
  ASSERT_EQ(answer.prompt_logprobs.size(), 5u);
  EXPECT_TRUE(std::isnan(answer.prompt_logprobs[0].logprob));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(answer.prompt_logprobs[i].id, request.prompt_ids[i]);
}

// Fault B115: prompt log-probs are whole, cold and warm, in chunks.
TEST(Engine, PromptLogprobsSurviveChunksAndHits) {
  EngineOptions options = small_options();
  options.chunked_prefill_size = 8;
  Fixture f(Script{{10}, {1}}, options);
  GenerateRequest request = request_of("a", 1);
  request.prompt_ids.clear();
  for (int32_t i = 0; i < 20; ++i) request.prompt_ids.push_back(20 + i);
  for (const int64_t start : {0, 0, 7, 19}) {
    request.logprobs.prompt_start = start;
    const TokenEvent answer = f.ask(request);
    ASSERT_EQ(answer.prompt_logprobs.size(), static_cast<size_t>(20 - start));
    for (size_t i = 0; i < answer.prompt_logprobs.size(); ++i) {
      EXPECT_EQ(answer.prompt_logprobs[i].id, 20 + static_cast<int32_t>(i) + start);
    }
    EXPECT_LE(answer.cached_tokens, std::max<int64_t>(start - 1, 0));
  }
}

TEST(Engine, PrefillOnly) {
  Fixture f(endless());
  const TokenEvent answer = f.ask(request_of("a", 0));
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(answer.finish, FinishReason::kLength);
}

TEST(Engine, RefusesADuplicateRidUntilTheFirstHasEnded) {
  Fixture f(endless());
  f.executor->stall();  // or the first might end by itself
  auto sink = f.start(request_of("a"));
  EXPECT_EQ(f.engine.submit(request_of("a"), std::make_shared<CollectingSink>()).code,
            StatusCode::kInvalidArgument);
  f.engine.cancel("a");
  f.executor->release();
  EXPECT_EQ(sink->wait().finish, FinishReason::kAbort);
  f.start(request_of("a"));
}

// What runs does not count as queued, also while its first step lasts.
TEST(Engine, AFullQueueRefuses) {
  EngineOptions options = small_options();
  options.max_running_requests = 1;
  options.max_queued_requests = 2;
  Fixture f(endless(), options);
  f.executor->stall();
  auto running = f.start(request_of("running"));
  f.executor->wait_until_stalled();
  EXPECT_EQ(f.engine.stats().num_running, 1);
  EXPECT_EQ(f.engine.stats().num_queued, 0);
  auto first = f.start(request_of("first"));
  auto second = f.start(request_of("second"));
  const Status refused = f.engine.submit(request_of("x"), std::make_shared<CollectingSink>());
  EXPECT_EQ(refused.code, StatusCode::kUnavailable);
  f.executor->release();
  for (auto& sink : {running, first, second}) {
    EXPECT_EQ(sink->wait().finish, FinishReason::kLength);
  }
  EXPECT_EQ(f.ask(request_of("x", 1)).finish, FinishReason::kLength);
}

TEST(Engine, FinishEndsWithStop) {
  Fixture f(endless());
  auto first = f.start(request_of("first", 3));
  EXPECT_EQ(first->wait().finish, FinishReason::kLength);
  f.executor->stall();
  auto sink = f.start(request_of("a", 400));
  f.executor->wait_until_stalled();
  f.engine.finish("a");
  f.engine.finish("a");
  f.engine.finish("unknown");
  f.executor->release();
  const TokenEvent answer = sink->wait();
  EXPECT_EQ(answer.finish, FinishReason::kStop);
  EXPECT_LT(answer.completion_tokens, 400);
  EXPECT_FALSE(answer.matched_stop_id.has_value());
}

// Fault B103: requests that go away at any moment leave nothing behind, and others are fine.
TEST(Engine, FiveHundredCancelsLeaveNothing) {
  EngineOptions options = small_options();
  options.num_pages = 24;
  options.chunked_prefill_size = 3;
  Fixture f(endless(), options);
  auto steady = f.start(request_of("steady", 80));
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 500; ++i) {
    const std::string rid = fmt::format("r{}", i);
    sinks.push_back(f.start(request_of(rid, 500)));
    if (i % 3 == 0) sinks.back()->wait_for_ids(static_cast<size_t>(i % 4));
    f.engine.cancel(rid);
  }
  int num_aborted = 0;  // a few may reach the end of the pool first
  for (auto& sink : sinks) num_aborted += sink->wait().finish == FinishReason::kAbort ? 1 : 0;
  EXPECT_GT(num_aborted, 100);
  EXPECT_EQ(steady->wait().finish, FinishReason::kLength);
  const EngineStats stats = f.engine.stats();
  EXPECT_EQ(stats.num_running, 0);
  EXPECT_EQ(stats.num_queued, 0);
  EXPECT_EQ(stats.free_pages + stats.cached_pages, stats.total_pages);
  EXPECT_EQ(stats.finished_abort, num_aborted);
  EXPECT_EQ(stats.finished_length, 501 - num_aborted);
  for (auto& sink : sinks) EXPECT_EQ(sink->num_late_events(), 0);
}

TEST(Engine, ALostDeviceFailsEveryRequest) {
  EngineOptions options = small_options();
  options.max_running_requests = 2;
  Fixture f(endless(), options);
  f.executor->throw_at_step(5);
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 4; ++i) {
    auto sink = std::make_shared<CollectingSink>();
    if (f.engine.submit(request_of(std::to_string(i)), sink).ok()) sinks.push_back(sink);
  }
  ASSERT_FALSE(sinks.empty());
  for (auto& sink : sinks) {
    const TokenEvent answer = sink->wait();
    EXPECT_EQ(answer.finish, FinishReason::kError);
    EXPECT_EQ(answer.error.code, StatusCode::kUnavailable);
    EXPECT_EQ(sink->num_late_events(), 0);
  }
  EXPECT_FALSE(f.engine.stats().alive);
  EXPECT_EQ(f.engine.submit(request_of("x"), std::make_shared<CollectingSink>()).code,
            StatusCode::kUnavailable);
  EXPECT_EQ(f.flush().get().code, StatusCode::kUnavailable);
  f.engine.cancel("0");
  f.engine.stop(0);
}

TEST(Engine, OneRequestsErrorIsItsOwn) {
  Fixture f(std::make_unique<ScriptedExecutor>(
                [](const GenerateRequest& request) {
                  Script script = endless();
                  if (request.rid == "bad") script.error_after = 2;
                  return script;
                },
                std::vector{kEos}),
            small_options());
  auto good = f.start(request_of("good", 20));
  const TokenEvent bad = f.ask(request_of("bad", 20));
  EXPECT_EQ(bad.finish, FinishReason::kError);
  EXPECT_EQ(bad.error.code, StatusCode::kInternal);
  EXPECT_EQ(bad.ids.size(), 2u);
  EXPECT_EQ(good->wait().ids.size(), 20u);
  EXPECT_TRUE(f.engine.stats().alive);
}

TEST(Engine, FlushesOnlyWhenIdle) {
  Fixture f(endless());
  f.ask(request_of("a", 10));
  EXPECT_GT(f.engine.stats().cached_pages, 0);
  EXPECT_TRUE(f.flush().get().ok());
  EXPECT_EQ(f.ask(request_of("b", 1)).cached_tokens, 0);
  f.executor->stall();
  auto sink = f.start(request_of("c", 400));
  auto flushed = f.flush();
  f.executor->release();
  EXPECT_EQ(flushed.get().code, StatusCode::kUnavailable);
  sink->wait();
}

TEST(Engine, AFlushWaitsForAnIdleMomentAsLongAsItWasTold) {
  ManualClock clock;
  auto owned = std::make_unique<ScriptedExecutor>(endless(), std::vector{kEos});
  ScriptedExecutor& executor = *owned;
  Engine engine(small_options(), std::move(owned), clock);
  const auto start = [&](const std::string& rid) {
    auto sink = std::make_shared<CollectingSink>();
    EXPECT_TRUE(engine.submit(request_of(rid, 400), sink).ok());
    return sink;
  };
  executor.stall();
  auto first = start("first");
  auto patient = flush(engine, 1000);
  auto hasty = flush(engine, 10);
  clock.advance_ns(11);
  executor.release();
  EXPECT_EQ(hasty.get().code, StatusCode::kUnavailable);
  EXPECT_TRUE(patient.get().ok());
  EXPECT_TRUE(first->ended());
  executor.stall();
  auto second = start("second");
  auto cut_off = flush(engine, 1000);
  std::thread stopper([&] { engine.stop(0); });
  executor.release();
  stopper.join();
  cut_off.get();  // has an answer
}

TEST(Engine, StopDrainsOrAborts) {
  {
    Fixture f(endless());
    auto sink = f.start(request_of("a", 50));
    f.engine.stop(int64_t{60} * 1'000'000'000);
    EXPECT_EQ(sink->wait().finish, FinishReason::kLength);
    EXPECT_EQ(f.engine.submit(request_of("b"), std::make_shared<CollectingSink>()).code,
              StatusCode::kUnavailable);
  }
  {
    EngineOptions options = small_options();
    options.context_length = 1 << 20;
    options.num_pages = 1 << 16;
    Fixture f(endless(), options);
    auto sink = f.start(request_of("a", 90000));
    sink->wait_for_ids(1);
    f.engine.stop(0);
    EXPECT_EQ(sink->wait().finish, FinishReason::kAbort);
    f.engine.stop(0);
  }
}

TEST(Engine, TheHeartbeatBeatsWhenIdle) {
  Fixture f(endless());
  const int64_t before = f.engine.stats().steps;
  while (f.engine.stats().steps == before) std::this_thread::yield();
}

// Fault B113: counters never fall, and add up to what the clients were told.
TEST(Engine, CountersAddUp) {
  EngineOptions options = small_options();
  options.num_pages = 40;
  options.max_running_requests = 6;
  Fixture f(Script{std::vector<int32_t>(100000, 50), {3, 1, 5, 2}}, options);
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  EngineStats last = f.engine.stats();
  const auto check = [&] {
    const EngineStats now = f.engine.stats();
    EXPECT_GE(now.prompt_tokens, last.prompt_tokens);
    EXPECT_GE(now.cached_tokens, last.cached_tokens);
    EXPECT_GE(now.generated_tokens, last.generated_tokens);
    EXPECT_GE(now.preemptions, last.preemptions);
    EXPECT_GE(now.steps, last.steps);
    EXPECT_GE(now.free_pages, 0);
    last = now;
  };
  for (int i = 0; i < 200; ++i) {
    const std::string rid = std::to_string(i);
    GenerateRequest request = request_of(rid, 1 + i % 90);
    request.prompt_ids.push_back(i % 7);
    sinks.push_back(f.start(std::move(request)));
    if (i % 5 == 0) f.engine.cancel(rid);
    if (i % 7 == 0) f.engine.finish(rid);
    if (i % 20 == 0) sinks.back()->wait();
    check();
  }
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, preemptions = 0;
  for (auto& sink : sinks) {
    const TokenEvent answer = sink->wait();
    EXPECT_NE(answer.finish, FinishReason::kNone);
    EXPECT_EQ(answer.completion_tokens, static_cast<int64_t>(answer.ids.size()));
    prompt_tokens += answer.prompt_tokens;
    cached_tokens += answer.cached_tokens;
    generated_tokens += answer.completion_tokens;
    preemptions += answer.num_preemptions;
  }
  check();
  EXPECT_EQ(last.prompt_tokens, prompt_tokens);
  EXPECT_EQ(last.cached_tokens, cached_tokens);
  EXPECT_EQ(last.generated_tokens, generated_tokens);
  EXPECT_EQ(last.preemptions, preemptions);
  EXPECT_EQ(last.finished_stop + last.finished_length + last.finished_abort + last.finished_error,
            200);
  EXPECT_EQ(last.num_running, 0);
  EXPECT_EQ(last.num_queued, 0);
}

}  // namespace
}  // namespace winnow::engine
