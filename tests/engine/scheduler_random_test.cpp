// Random traffic against the scheduler, with the executor that checks every page at every step.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "testing/kv_checking_executor.h"
#include "testing/scheduler_bench.h"

namespace winnow::engine {
namespace {

using ::winnow::testing::Answer;
using ::winnow::testing::expected_answer;
using ::winnow::testing::KvCheckOptions;
using ::winnow::testing::SchedulerBench;

int64_t num_operations = 0;  // over all cases, to see that there were enough
int64_t num_preemptions = 0;
int64_t num_copies = 0;

EngineOptions random_options(int32_t page_size) {
  EngineOptions options;
  options.page_size = page_size;
  options.num_pages = *rc::gen::inRange(1, 1 + std::max(6, 120 / page_size));
  options.context_length = *rc::gen::element(20, 60, 1000);
  options.chunked_prefill_size = *rc::gen::element(1, 2, 3, 5, 8, 17, 64, 1000);
  options.max_running_requests = *rc::gen::inRange(1, 9);
  options.prefix_cache = *rc::gen::inRange(0, 5) > 0;
  return options;
}

// Prompts are made of few blocks, so that they share prefixes and diverge inside pages.
GenerateRequest random_request(const EngineOptions& options) {
  GenerateRequest request;
  const int64_t pool_tokens = int64_t{options.num_pages} * options.page_size;
  const auto longest =
      static_cast<int32_t>(std::min<int64_t>({pool_tokens, options.context_length - 1, 90}));
  const int32_t length = *rc::gen::inRange(1, longest + 1);
  const int32_t stem = *rc::gen::inRange(0, 3);
  const int32_t shared = *rc::gen::inRange(0, length + 1);
  for (int32_t i = 0; i < length; ++i) {
    request.prompt_ids.push_back(i < shared ? (i * 5 + stem) % 11 + 20 : *rc::gen::inRange(1, 4));
  }
  SamplingParams& sampling = request.sampling;
  sampling.max_new_tokens = *rc::gen::element(0, 1, 2, 7, 30, 100);
  sampling.min_new_tokens = std::min<int64_t>(*rc::gen::element(0, 0, 3), sampling.max_new_tokens);
  sampling.ignore_eos = *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 4) == 0) sampling.stop_token_ids = {7, 8, 9};
  if (*rc::gen::inRange(0, 6) == 0) request.cache_namespace = "other";
  return request;
}

struct Sent {
  GenerateRequest request;
  bool was_ended = false;
};

class Traffic {
 public:
  Traffic(const EngineOptions& options, const KvCheckOptions& check) : bench_(options, check) {}

  void operate() {
    const int what = *rc::gen::inRange(0, 12);
    if (what < 4) {
      GenerateRequest request = random_request(bench_.options);
      const uint64_t id = bench_.add(request);
      sent_[id] = {std::move(request)};
    } else if (what < 6 && !sent_.empty()) {  // of any request, ended ones too
      const uint64_t id = 1 + *rc::gen::inRange<uint64_t>(0, bench_.next_id);
      end(id, what == 4 ? FinishReason::kAbort : FinishReason::kStop);
    } else if (what == 6) {
      bench_.scheduler.flush_cache();
    } else if (bench_.scheduler.has_work()) {
      bench_.step();
    }
    ++num_operations;
    check_sound();
  }

  void drain() {
    bench_.run_all();
    check_sound();
    for (const auto& [id, sent] : sent_) check_answer(bench_.answers[id], sent);
    bench_.expect_all_pages_free();
    num_preemptions += bench_.scheduler.num_preemptions();
    num_copies += bench_.executor.num_copies();
  }

 private:
  void end(uint64_t id, FinishReason reason) {
    const bool was_live = bench_.answers[id].finish == FinishReason::kNone;
    bench_.end(id, reason);
    if (was_live) {
      RC_ASSERT(bench_.answers[id].finish == reason);
      sent_[id].was_ended = true;
    }
  }
  void check_sound() {
    if (!bench_.executor.fault().empty()) RC_FAIL(bench_.executor.fault());
    const std::string wrong = bench_.scheduler.check_integrity();
    if (!wrong.empty()) RC_FAIL(wrong);
  }
  void check_answer(const Answer& answer, const Sent& sent) {
    const EngineOptions& options = bench_.options;
    const auto num_prompt = static_cast<int64_t>(sent.request.prompt_ids.size());
    const int64_t pool_tokens = int64_t{options.num_pages} * options.page_size;
    const int64_t room = std::min<int64_t>(options.context_length, pool_tokens + 1) - num_prompt;
    const auto expected = expected_answer(bench_.check, sent.request,
                                          std::min(sent.request.sampling.max_new_tokens, room));
    RC_ASSERT(answer.finish != FinishReason::kNone);
    RC_ASSERT(answer.cached_tokens < num_prompt);
    RC_ASSERT(answer.ids.size() <= expected.size());
    RC_ASSERT(std::equal(answer.ids.begin(), answer.ids.end(), expected.begin()));
    RC_ASSERT(sent.was_ended || answer.ids.size() == expected.size());
  }

  SchedulerBench bench_;
  std::map<uint64_t, Sent> sent_;
};

TEST(SchedulerRandom, AnythingAtAnyTimeDeliversTheSameTokens) {
  for (const int32_t page_size : {1, 4, 64}) {
    EXPECT_TRUE(rc::check("random traffic", [&] {
      KvCheckOptions check;
      check.max_ids_per_step = *rc::gen::element(1, 1, 2, 8);
      Traffic traffic(random_options(page_size), check);
      for (int i = 0; i < 150; ++i) traffic.operate();
      traffic.drain();
    })) << page_size;
  }
  EXPECT_GE(num_operations, 45000);
  EXPECT_GT(num_preemptions, 100);
  EXPECT_GT(num_copies, 100);
}

}  // namespace
}  // namespace winnow::engine
