// A scheduler with the executor that checks every page, run step by step on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler.h"
#include "testing/kv_checking_executor.h"

namespace winnow::testing {

struct Answer {
  std::vector<int32_t> ids;
  engine::FinishReason finish = engine::FinishReason::kNone;
  int64_t cached_tokens = 0;
  int32_t num_preemptions = 0;
};

struct SchedulerBench {
  engine::EngineOptions options;
  KvCheckOptions check;
  KvCheckingExecutor executor;
  engine::Scheduler scheduler;
  std::vector<engine::SliceResult> results;  // of the last step
  uint64_t next_id = 0;
  std::map<uint64_t, Answer> answers;

  explicit SchedulerBench(const engine::EngineOptions& o, KvCheckOptions c = {})
      : options(o), check(c), executor(o, c), scheduler(o, c.eos_ids) {}

  uint64_t add(engine::GenerateRequest request) {
    EXPECT_TRUE(engine::Scheduler::check_fits(options, request).ok());
    auto sequence = std::make_unique<engine::Sequence>();
    sequence->id = ++next_id;
    request.rid = std::to_string(next_id);
    sequence->request = std::move(request);
    scheduler.add(std::move(sequence));
    return next_id;
  }

  // Takes over what the sequences have to deliver, and checks the accounts.
  void collect() {
    for (engine::Sequence* s : scheduler.updated()) {
      Answer& answer = answers[s->id];
      EXPECT_EQ(answer.finish, engine::FinishReason::kNone) << "an event after the end";
      answer.ids.assign(s->tokens.begin() + s->num_prompt(), s->tokens.end());
      answer.finish = s->finish;
      answer.cached_tokens = s->cached_tokens;
      answer.num_preemptions = s->num_preemptions;
    }
    scheduler.clear_updated();
    ASSERT_EQ(scheduler.check_integrity(), "");
  }

  const engine::StepPlan& step() {
    const engine::StepPlan& plan = scheduler.schedule();
    for (const engine::PageCopy& copy : plan.copies) {
      executor.copy_tokens(copy.from_page, copy.to_page, copy.num_tokens);
    }
    results.resize(plan.batch.slices.size());
    executor.run(plan.batch, results);
    EXPECT_EQ(executor.fault(), "");
    scheduler.update(results);
    collect();
    return plan;
  }

  void end(uint64_t id, engine::FinishReason reason) {
    scheduler.end(id, reason, {});
    collect();
  }

  void run_all() {
    int64_t num_steps = 0;
    while (scheduler.has_work() && executor.fault().empty()) {
      step();
      ASSERT_LT(++num_steps, 100000) << "no progress";
    }
  }

  Answer run(engine::GenerateRequest request) {
    const uint64_t id = add(std::move(request));
    run_all();
    return answers[id];
  }

  void expect_all_pages_free() {
    EXPECT_EQ(scheduler.num_running(), 0);
    EXPECT_EQ(scheduler.num_free_pages() + scheduler.num_evictable_pages(), options.num_pages);
    EXPECT_TRUE(scheduler.flush_cache());
    EXPECT_EQ(scheduler.num_free_pages(), options.num_pages);
  }
};

}  // namespace winnow::testing
