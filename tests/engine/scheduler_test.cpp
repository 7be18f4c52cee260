#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "testing/kv_checking_executor.h"
#include "testing/scheduler_bench.h"

namespace winnow::engine {
namespace {

using ::winnow::testing::Answer;
using ::winnow::testing::expected_answer;
using ::winnow::testing::KvCheckOptions;
using ::winnow::testing::SchedulerBench;

std::vector<int32_t> prompt_of(int32_t length, int32_t seed = 1) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < length; ++i) tokens.push_back((i * 7 + seed * i * i + seed) % 40);
  return tokens;
}

GenerateRequest request_of(std::vector<int32_t> prompt, int64_t max_new_tokens) {
  GenerateRequest request;
  request.prompt_ids = std::move(prompt);
  request.sampling.max_new_tokens = max_new_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

EngineOptions options_of(int32_t page_size, int32_t num_pages, int32_t chunk) {
  EngineOptions options;
  options.page_size = page_size;
  options.num_pages = num_pages;
  options.chunked_prefill_size = chunk;
  options.context_length = 1 << 20;
  options.max_running_requests = 8;
  return options;
}

// Fault B41: an answer with a prefix hit equals a full recompute.
TEST(Scheduler, PrefixHitsChangeNothing) {
  for (const int32_t shared : {0, 4, 8, 36, 39, 40}) {
    SchedulerBench bench(options_of(4, 64, 16));
    std::vector<int32_t> first = prompt_of(40);
    bench.run(request_of(first, 4));
    std::vector<int32_t> second = first;
    for (size_t i = static_cast<size_t>(shared); i < second.size(); ++i) second[i] += 3;
    const GenerateRequest request = request_of(second, 6);
    const Answer answer = bench.run(request);
    EXPECT_EQ(answer.ids, expected_answer(bench.check, request, 6));
    EXPECT_EQ(answer.cached_tokens, std::min(shared, 39)) << shared;
    bench.expect_all_pages_free();
  }
}

// Fault B46: the same prompt twice, of whole pages or not, leaves one row to compute.
TEST(Scheduler, AFullHitRecomputesOneRow) {
  for (const int32_t length : {4, 8, 64, 1, 3, 9}) {
    for (const int64_t max_new_tokens : {0, 1, 3}) {
      SchedulerBench bench(options_of(4, 64, 16));
      const GenerateRequest request = request_of(prompt_of(length), max_new_tokens);
      const Answer cold = bench.run(request);
      const int64_t rows_before = bench.executor.num_rows();
      bench.add(request);
      const StepPlan& plan = bench.step();
      if (max_new_tokens > 1) {  // else the sequence and its tokens are gone
        ASSERT_EQ(plan.batch.slices.size(), 1u);
        EXPECT_EQ(plan.batch.slices[0].num_tokens, 1);
        EXPECT_EQ(plan.batch.slices[0].write_from, length);
      }
      bench.run_all();
      EXPECT_EQ(bench.executor.num_rows() - rows_before, std::max<int64_t>(max_new_tokens, 1));
      EXPECT_EQ(bench.answers[2].ids, cold.ids);
      EXPECT_EQ(bench.answers[2].cached_tokens, length - 1);
      EXPECT_EQ(bench.answers[2].finish, FinishReason::kLength);
    }
  }
}

// Fault B47: chunks are cut from what is left to compute, and none is empty.
TEST(Scheduler, ChunksFollowTheUncachedRest) {
  for (const int32_t cached : {16, 12, 19, 11}) {
    SchedulerBench bench(options_of(4, 64, 8));
    bench.run(request_of(prompt_of(cached), 1));
    std::vector<int32_t> prompt = prompt_of(20);
    const GenerateRequest request = request_of(prompt, 5);
    const Answer answer = bench.run(request);
    EXPECT_EQ(answer.cached_tokens, cached);
    EXPECT_EQ(answer.ids, expected_answer(bench.check, request, 5));
  }
}

// Fault B49: what can never run is refused at once; what merely asks for too much ends by length.
TEST(Scheduler, NeverFitsIsToldFromNotNow) {
  EngineOptions options = options_of(4, 64, 16);  // 256 tokens
  options.context_length = 1024;
  EXPECT_EQ(Scheduler::check_fits(options, request_of(prompt_of(300), 1)).code,
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Scheduler::check_fits(options, request_of({}, 1)).code, StatusCode::kInvalidArgument);
  EXPECT_TRUE(Scheduler::check_fits(options, request_of(prompt_of(256), 1)).ok());
  options.context_length = 100;
  EXPECT_FALSE(Scheduler::check_fits(options, request_of(prompt_of(100), 1)).ok());
  EXPECT_TRUE(Scheduler::check_fits(options, request_of(prompt_of(100), 0)).ok());
  EXPECT_TRUE(Scheduler::check_fits(options, request_of(prompt_of(99), 50)).ok());

  options.context_length = 1024;
  SchedulerBench bench(options);
  const uint64_t large = bench.add(request_of(prompt_of(200), 500));
  const uint64_t small = bench.add(request_of(prompt_of(10, 3), 10));
  bench.run_all();
  EXPECT_EQ(bench.answers[large].finish, FinishReason::kLength);
  EXPECT_EQ(bench.answers[large].ids.size(), 57u);  // the newest token needs no slot
  EXPECT_EQ(bench.answers[small].ids.size(), 10u);
  bench.expect_all_pages_free();
}

// Fault B50: the accounts are in whole pages, so a chunk that the budget admits finds its pages.
TEST(Scheduler, TightPoolsAndOddChunks) {
  for (const int32_t chunk : {10, 1, 3, 1000}) {
    for (const int32_t length : {9, 11, 13}) {
      const int32_t pages = (length + 3) / 4;
      SchedulerBench bench(options_of(4, pages, chunk));
      for (int32_t seed = 1; seed <= 3; ++seed) {
        bench.add(request_of(prompt_of(length, seed), 20));
      }
      bench.run_all();
      for (uint64_t id = 1; id <= 3; ++id) {
        EXPECT_EQ(bench.answers[id].ids.size(), static_cast<size_t>(pages * 4 + 1 - length));
      }
      bench.expect_all_pages_free();
    }
  }
}

TEST(Scheduler, DecodesComeFirstAndChunksShareTheBudget) {
  SchedulerBench bench(options_of(4, 256, 8));
  bench.add(request_of(prompt_of(6, 1), 50));
  bench.add(request_of(prompt_of(30, 2), 50));
  bench.add(request_of(prompt_of(5, 3), 50));
  const StepPlan* plan = &bench.step();
  ASSERT_EQ(plan->batch.slices.size(), 2u);
  EXPECT_EQ(plan->batch.slices[0].num_tokens, 6);
  EXPECT_EQ(plan->batch.slices[1].num_tokens, 2);
  for (int i = 0; i < 3; ++i) {
    plan = &bench.step();
    ASSERT_EQ(plan->batch.slices.size(), 2u);
    EXPECT_EQ(plan->batch.slices[0].num_tokens, 1);  // the decode
    EXPECT_EQ(plan->batch.slices[1].num_tokens, 8);
  }
  plan = &bench.step();
  ASSERT_EQ(plan->batch.slices.size(), 3u);
  EXPECT_EQ(plan->batch.slices[1].num_tokens, 4);  // the end of the second prompt
  EXPECT_EQ(plan->batch.slices[2].num_tokens, 4);  // the third, first come first served
}

TEST(Scheduler, PreemptsTheYoungestAndLosesNothing) {
  SchedulerBench bench(options_of(4, 12, 64));
  std::vector<GenerateRequest> requests;
  for (int32_t i = 0; i < 4; ++i) {
    requests.push_back(request_of(prompt_of(6, i + 1), 30));
    bench.add(requests.back());
  }
  bench.run_all();
  EXPECT_GT(bench.scheduler.num_preemptions(), 0);
  EXPECT_EQ(bench.answers[1].num_preemptions, 0);
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(bench.answers[id].ids, expected_answer(bench.check, requests[id - 1], 30)) << id;
  }
  bench.expect_all_pages_free();
}

// Fault B71: several ids a step up to the last token of the context, at whole pages.
TEST(Scheduler, SeveralIdsAStepUpToTheContextsEnd) {
  for (const int32_t max_ids : {1, 3, 8}) {
    EngineOptions options = options_of(4, 12, 64);
    options.context_length = 16;
    KvCheckOptions check;
    check.max_ids_per_step = max_ids;
    SchedulerBench bench(options, check);
    std::vector<GenerateRequest> requests;
    for (int32_t length = 12; length <= 15; ++length) {
      requests.push_back(request_of(prompt_of(length, length), 100));
      bench.add(requests.back());
    }
    bench.run_all();
    for (uint64_t id = 1; id <= 4; ++id) {
      const auto room = static_cast<int64_t>(5 - id);
      EXPECT_EQ(bench.answers[id].ids, expected_answer(check, requests[id - 1], room));
      EXPECT_EQ(bench.answers[id].ids.size(), static_cast<size_t>(room));
    }
    bench.expect_all_pages_free();
  }
}

TEST(Scheduler, AHundredPreemptionsChangeNothing) {
  SchedulerBench bench(options_of(4, 40, 64));
  std::vector<GenerateRequest> requests;
  for (int32_t i = 0; i < 60; ++i) {
    requests.push_back(request_of(prompt_of(5 + i % 7, i + 1), 80));
    bench.add(requests.back());
  }
  bench.run_all();
  EXPECT_GE(bench.scheduler.num_preemptions(), 100);
  for (uint64_t id = 1; id <= requests.size(); ++id) {
    EXPECT_EQ(bench.answers[id].ids, expected_answer(bench.check, requests[id - 1], 80)) << id;
  }
  bench.expect_all_pages_free();
}

// The choices of one request: the prompt is computed once, and the others wait for it.
TEST(Scheduler, TheSamePromptAtOnceIsComputedOnce) {
  SchedulerBench bench(options_of(4, 256, 1000));
  for (int i = 0; i < 5; ++i) bench.add(request_of(prompt_of(80), 1));
  bench.run_all();
  EXPECT_EQ(bench.executor.num_rows(), 80 + 4);
  for (uint64_t id = 2; id <= 5; ++id) EXPECT_EQ(bench.answers[id].cached_tokens, 79);
}

TEST(Scheduler, CancelAtAnyMomentReturnsEveryPage) {
  for (int num_steps = 0; num_steps < 14; ++num_steps) {
    for (uint64_t victim = 1; victim <= 3; ++victim) {
      SchedulerBench bench(options_of(4, 16, 8));
      std::vector<GenerateRequest> requests;
      for (int32_t i = 0; i < 3; ++i) {
        requests.push_back(request_of(prompt_of(11 + i, i + 1), 7));
        bench.add(requests.back());
      }
      for (int i = 0; i < num_steps; ++i) bench.step();
      bench.end(victim, FinishReason::kAbort);
      bench.end(victim, FinishReason::kAbort);  // once more changes nothing
      bench.run_all();
      for (uint64_t id = 1; id <= 3; ++id) {
        if (id == victim) continue;
        EXPECT_EQ(bench.answers[id].ids, expected_answer(bench.check, requests[id - 1], 7));
      }
      bench.expect_all_pages_free();
    }
  }
}

TEST(Scheduler, OneSequencesErrorEndsItAlone) {
  SchedulerBench bench(options_of(4, 64, 64));
  bench.add(request_of(prompt_of(5, 1), 5));
  bench.add(request_of(prompt_of(5, 2), 5));
  const StepPlan& plan = bench.scheduler.schedule();
  bench.results.resize(plan.batch.slices.size());
  bench.executor.run(plan.batch, bench.results);
  bench.results[0].error = {StatusCode::kInternal, "NaN logits", ""};
  bench.scheduler.update(bench.results);
  bench.collect();
  EXPECT_EQ(bench.answers[1].finish, FinishReason::kError);
  EXPECT_TRUE(bench.answers[1].ids.empty());  // fault B74: an error, not token 0
  bench.run_all();
  EXPECT_EQ(bench.answers[2].ids.size(), 5u);
  bench.expect_all_pages_free();
}

TEST(Scheduler, ANamespaceSeesNoOthersPrefixes) {
  SchedulerBench bench(options_of(4, 64, 64));
  GenerateRequest request = request_of(prompt_of(20), 3);
  bench.run(request);
  request.cache_namespace = "tenant";
  EXPECT_EQ(bench.run(request).cached_tokens, 0);
  EXPECT_EQ(bench.run(request).cached_tokens, 19);
}

TEST(Scheduler, WithoutPrefixCacheNothingIsKept) {
  EngineOptions options = options_of(4, 64, 64);
  options.prefix_cache = false;
  SchedulerBench bench(options);
  bench.run(request_of(prompt_of(20), 3));
  EXPECT_EQ(bench.scheduler.num_free_pages(), 64);
  EXPECT_EQ(bench.run(request_of(prompt_of(20), 3)).cached_tokens, 0);
}

}  // namespace
}  // namespace winnow::engine
