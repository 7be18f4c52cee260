// The step loop takes no memory once it is warm. What is handed to sinks is excepted: an event's
// vectors belong to the receiver.
#include "testing/allocation_counter.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model_executor.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "testing/loaded_fixture.h"
#include "testing/scripted_executor.h"

namespace winnow::engine {
namespace {

using ::winnow::testing::num_allocations;
using ::winnow::testing::ScriptedExecutor;

struct Loop {
  EngineOptions options;
  ScriptedExecutor executor{{.ids = std::vector<int32_t>(100000, 9), .step_sizes = {1}}, {2}};
  Scheduler scheduler;
  std::vector<SliceResult> results{8};
  uint64_t next_id = 0;

  explicit Loop(const EngineOptions& o) : options(o), scheduler(o, {2}) {}

  void add(int32_t prompt_length, int64_t max_new_tokens) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = ++next_id;
    sequence->request.rid = std::to_string(next_id);
    for (int32_t i = 0; i < prompt_length; ++i) {
      sequence->request.prompt_ids.push_back(static_cast<int32_t>(next_id) * 1000 + i);
    }
    sequence->request.sampling.max_new_tokens = max_new_tokens;
    scheduler.add(std::move(sequence));
  }
  void step() {
    const StepPlan& plan = scheduler.schedule();
    const auto used = std::span(results).first(plan.batch.slices.size());
    executor.run(plan.batch, used);
    scheduler.update(used);
    scheduler.clear_updated();
  }
};

TEST(Allocations, NoneInTheStepLoopOnceWarm) {
  EngineOptions options;
  options.page_size = 4;
  options.num_pages = 400;
  options.context_length = 1 << 16;
  options.max_running_requests = 8;
  options.chunked_prefill_size = 16;
  Loop loop(options);
  loop.add(500, 900);  // leaves pages in the cache, to be evicted below
  while (loop.scheduler.has_work()) loop.step();
  for (int i = 0; i < 8; ++i) loop.add(40, 5000);
  loop.add(30, 10);  // waits: no slot is free
  for (int i = 0; i < 40; ++i) loop.step();
  ASSERT_EQ(loop.scheduler.num_running(), 8);
  ASSERT_EQ(loop.scheduler.num_waiting(), 1);
  const int32_t evictable_before = loop.scheduler.num_evictable_pages();
  const int64_t before = num_allocations();
  for (int i = 0; i < 100; ++i) loop.step();
  EXPECT_EQ(num_allocations() - before, 0);
  EXPECT_GT(loop.executor.num_steps(), 100);
  EXPECT_LT(loop.scheduler.num_evictable_pages(), evictable_before);  // it did evict
}

// The same with a model below: decodes and a prompt's chunks in one batch. Counted on the engine's
// thread, which is also the backend's first.
TEST(Allocations, NoneInTheModelsSteps) {
  for (const char* name : {"tiny_glm52", "tiny_v3"}) {
    testing::LoadedFixture fixture(name, {.num_pages = 1});
    EngineOptions options;
    options.page_size = 4;
    options.num_pages = 200;
    options.context_length = 400;
    options.max_running_requests = 4;
    options.chunked_prefill_size = 8;
    ModelExecutor executor(options, fixture.config, fixture.numerics, fixture.weights,
                           *fixture.backend);
    Scheduler scheduler(options, {});
    std::vector<SliceResult> results(4);
    const auto add = [&](uint64_t id, size_t prompt_length, int64_t max_new_tokens) {
      auto sequence = std::make_unique<Sequence>();
      sequence->id = id;
      sequence->request.rid = std::to_string(id);
      sequence->request.prompt_ids.assign(prompt_length, static_cast<int32_t>(id));
      sequence->request.sampling.max_new_tokens = max_new_tokens;
      sequence->request.sampling.seed = id;
      scheduler.add(std::move(sequence));
    };
    const auto step = [&] {
      const BatchPlan& plan = scheduler.schedule().batch;
      const auto used = std::span(results).first(plan.slices.size());
      executor.run(plan, used);
      scheduler.update(used);
      scheduler.clear_updated();
    };
    for (uint64_t id = 1; id <= 4; ++id) add(id, 5, 9);
    while (scheduler.has_work()) step();
    for (uint64_t id = 5; id <= 8; ++id) add(id, id == 8 ? 300 : 5, 300);
    for (int i = 0; i < 10; ++i) step();
    const int64_t before = num_allocations();
    for (int i = 0; i < 80; ++i) step();  // the prompt ends on the way
    EXPECT_EQ(num_allocations() - before, 0) << name;
    ASSERT_EQ(scheduler.num_running(), 4);
  }
}

TEST(Allocations, NoneInTheSampler) {
  Sampler sampler(5000, {2});
  std::vector<float> row(5000);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i * 7919 % 1000) / 100;
  GenerateRequest request;
  request.prompt_ids = {1};
  request.sampling.seed = 1;
  request.sampling.frequency_penalty = 0.1f;
  request.sampling.min_new_tokens = 1;
  const int64_t before = num_allocations();
  for (const float top_p : {1.0f, 0.9f}) {
    for (const int32_t top_k : {-1, 40}) {
      for (const float min_p : {0.0f, 0.1f}) {
        request.sampling.top_p = top_p;
        request.sampling.top_k = top_k;
        request.sampling.min_p = min_p;
        EXPECT_TRUE(sampler.sample(row, request, request.prompt_ids).ok());
      }
    }
  }
  EXPECT_EQ(num_allocations() - before, 0);
}

}  // namespace
}  // namespace winnow::engine
