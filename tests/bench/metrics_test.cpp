// Every figure from records with known times.
#include "bench/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace winnow::bench {
namespace {

constexpr int64_t kMs = 1'000'000;

// One token an event: the first at ttft_ms, then every gap_ms; [DONE] with the last.
RequestRecord record(int64_t start_ms, int64_t ttft_ms, int64_t gap_ms, int64_t tokens) {
  RequestRecord r;
  r.due_ns = r.start_ns = start_ms * kMs;
  for (int64_t i = 0; i < tokens; ++i) {
    r.events.push_back({(start_ms + ttft_ms + gap_ms * i) * kMs, 1});
  }
  r.first_text_ns = r.events.empty() ? 0 : r.events.front().received_ns;
  r.end_ns = r.last_event_ns = r.events.empty() ? r.start_ns : r.events.back().received_ns;
  r.prompt_len = r.served_prompt_tokens = 100;
  r.output_len = r.completion_tokens = r.num_retokenized = tokens;
  return r;
}

// serving.md section 0: 64 requests in 89.52 s, 1,024 tokens in and out each.
TEST(Metrics, ArithmeticOfTheReferenceReport) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 64; ++i) {
    RequestRecord r;
    const int64_t origin = 1'000'000'000;
    const int64_t end = origin + static_cast<int64_t>(89.52e9);
    // Four waves of sixteen; the last ends with the run.
    r.last_event_ns = r.end_ns = i >= 48 ? end : origin + (1 + i / 16) * 22'371'280'000;
    r.start_ns = i < 16 ? origin : r.end_ns - 22'371'280'000;
    if (i < 16) r.last_event_ns = r.end_ns = origin + 22'371'280'000;
    r.due_ns = origin;
    r.events.push_back({r.start_ns + 702'870'000, 1});
    r.events.push_back({r.last_event_ns, 1023});
    r.prompt_len = r.served_prompt_tokens = 1024;
    r.output_len = r.completion_tokens = 1024;
    records.push_back(r);
  }
  const Metrics m = compute_metrics(records);
  EXPECT_EQ(m.completed, 64);
  EXPECT_EQ(m.total_input, 65536);
  EXPECT_EQ(m.total_output, 65536);
  EXPECT_NEAR(m.duration_s, 89.52, 1e-9);
  EXPECT_NEAR(m.request_throughput, 0.715, 5e-4);
  EXPECT_NEAR(m.output_throughput, 732.08, 5e-3);
  EXPECT_NEAR(m.total_throughput, 1464.16, 1e-2);
  EXPECT_NEAR(m.e2e.mean, 22371.28, 1e-6);
  EXPECT_NEAR(m.ttft.mean, 702.87, 1e-6);
  EXPECT_NEAR(m.concurrency, 15.994, 5e-4);
  EXPECT_NEAR(m.tpot.mean, 21.18, 5e-3);
  EXPECT_NEAR(m.itl.mean, 21.18, 5e-3);
  EXPECT_EQ(m.itl.count, 64u * 1023);
}

TEST(Metrics, TenTokensAtAHundredMilliseconds) {
  const std::vector<RequestRecord> records = {record(1000, 100, 100, 10)};
  const Metrics m = compute_metrics(records);
  EXPECT_DOUBLE_EQ(m.ttft.mean, 100);
  EXPECT_DOUBLE_EQ(m.e2e.mean, 1000);
  EXPECT_DOUBLE_EQ(m.tpot.mean, 100);
  EXPECT_EQ(m.itl.count, 9u);
  EXPECT_NEAR(m.itl.mean, 100, 1e-9);
  EXPECT_NEAR(m.itl.max, 100, 1e-9);
  EXPECT_DOUBLE_EQ(m.duration_s, 1);
  EXPECT_DOUBLE_EQ(m.output_throughput, 10);
  EXPECT_EQ(m.max_output_tokens_per_s, 9);  // the tenth falls into the next second
  EXPECT_EQ(m.peak_concurrent_requests, 1);
  EXPECT_DOUBLE_EQ(m.concurrency, 1);
  EXPECT_TRUE(warnings(records, m).empty());
}

// An event of three tokens after 60 ms gives three gaps of 20 ms; the first event's give none.
TEST(Metrics, TokensOfOneEventShareItsGap) {
  RequestRecord r = record(0, 50, 10, 1);
  r.events[0].num_tokens = 2;
  r.events.push_back({110 * kMs, 3});
  r.last_event_ns = r.end_ns = 110 * kMs;
  r.completion_tokens = 5;
  std::vector<double> itls;
  append_itls(r, itls);
  ASSERT_EQ(itls.size(), 3u);
  for (const double gap : itls) EXPECT_NEAR(gap, 0.020, 1e-12);
  std::vector<int64_t> times;
  append_token_times(r, times);
  EXPECT_EQ(times, (std::vector<int64_t>{50 * kMs, 50 * kMs, 70 * kMs, 90 * kMs, 110 * kMs}));
  EXPECT_NEAR(compute_metrics(std::vector{r}).tpot.mean, 60.0 / 4, 1e-9);
}

// B116: nothing, one token, no time, everything failed.
TEST(Metrics, NothingToDivideBy) {
  const Metrics none = compute_metrics({});
  EXPECT_EQ(none.completed, 0);
  EXPECT_EQ(none.duration_s, 0);
  EXPECT_EQ(none.output_throughput, 0);
  EXPECT_TRUE(std::isnan(none.e2e.mean));

  const std::vector<RequestRecord> instant = {record(5, 0, 0, 1)};
  const Metrics one = compute_metrics(instant);
  EXPECT_EQ(one.duration_s, 0);
  EXPECT_EQ(one.request_throughput, 0);
  EXPECT_EQ(one.e2e.mean, 0);
  EXPECT_EQ(one.tpot.count, 0u);
  EXPECT_EQ(one.itl.count, 0u);

  RequestRecord failed = record(0, 10, 10, 3);
  failed.error = "boom";
  const std::vector<RequestRecord> all_failed = {failed};
  const Metrics m = compute_metrics(all_failed);
  EXPECT_EQ(m.completed, 0);
  EXPECT_EQ(m.failed, 1);
  EXPECT_EQ(m.total_output, 0);
  EXPECT_EQ(m.first_error, "boom");
  EXPECT_TRUE(std::isnan(m.ttft.mean));
  EXPECT_EQ(warnings(all_failed, m).size(), 1u);
}

// Lock-step waves: whole seconds show twice the limit, the exact sweep does not.
TEST(Metrics, PeaksOfWaves) {
  std::vector<RequestRecord> records;
  for (int wave = 0; wave < 3; ++wave) {
    for (int i = 0; i < 16; ++i) records.push_back(record(wave * 1500, 500, 100, 11));
  }
  const Metrics m = compute_metrics(records);
  EXPECT_EQ(m.max_concurrent_requests, 32);
  EXPECT_EQ(m.peak_concurrent_requests, 16);
  EXPECT_EQ(m.steady.min_in_flight, 15);
  EXPECT_DOUBLE_EQ(m.steady.seconds(), 4.5);  // over the moments between two waves
  EXPECT_DOUBLE_EQ(m.concurrency, 16);
}

TEST(Metrics, SteadyWindowLeavesTheTailOut) {
  // Two requests at once from 0 to 2 s, then one alone until 10 s.
  const std::vector<RequestRecord> records = {record(0, 1000, 1000, 10), record(0, 1000, 1000, 2)};
  const SteadyWindow w = steady_window(records);
  EXPECT_EQ(w.min_in_flight, 2);
  EXPECT_DOUBLE_EQ(w.seconds(), 2);
  EXPECT_EQ(w.num_tokens, 4);
  EXPECT_EQ(w.num_completed, 1);
  EXPECT_DOUBLE_EQ(w.mean_in_flight, 2);
}

// The wait for the concurrency limit shows in one figure and stays out of the other.
TEST(Metrics, QueueingInTheClient) {
  RequestRecord r = record(3000, 100, 100, 10);
  r.due_ns = 1000 * kMs;
  const Metrics m = compute_metrics(std::vector{r});
  EXPECT_DOUBLE_EQ(m.e2e.mean, 1000);
  EXPECT_DOUBLE_EQ(m.e2e_queued.mean, 3000);
}

TEST(Metrics, DurationEndsAtTheLastByteFailuresIncluded) {
  RequestRecord failed;
  failed.error = "cut";
  failed.start_ns = 500 * kMs;
  failed.end_ns = 4000 * kMs;
  const std::vector<RequestRecord> records = {record(0, 100, 100, 10), failed};
  EXPECT_DOUBLE_EQ(compute_metrics(records).duration_s, 4);
}

TEST(Metrics, Goodput) {
  const std::vector<RequestRecord> records = {record(0, 100, 10, 11), record(0, 300, 10, 11),
                                              record(0, 100, 50, 11), record(0, 100, 10, 1)};
  const Metrics m = compute_metrics(records, {.ttft_ms = 200, .tpot_ms = 20, .e2el_ms = {}});
  ASSERT_TRUE(m.goodput);
  EXPECT_DOUBLE_EQ(m.goodput->attainment, 0.5);
  EXPECT_DOUBLE_EQ(m.goodput->ttft_attainment, 0.75);
  EXPECT_DOUBLE_EQ(m.goodput->tpot_attainment, 0.75);
  EXPECT_DOUBLE_EQ(m.goodput->requests_per_s, 2 / 0.6);
  EXPECT_FALSE(compute_metrics(records).goodput);
}

// B121: a warm cache and lengths other than planned are said.
TEST(Metrics, Warnings) {
  std::vector<RequestRecord> records = {record(0, 100, 10, 10)};
  records[0].cached_tokens = 50;
  Metrics m = compute_metrics(records);
  EXPECT_DOUBLE_EQ(m.cached_share, 0.5);
  ASSERT_EQ(warnings(records, m).size(), 1u);
  EXPECT_NE(warnings(records, m)[0].find("50.0 %"), std::string::npos);
  records[0].cached_tokens = 1;
  records[0].served_prompt_tokens = 102;
  m = compute_metrics(records);
  EXPECT_EQ(m.total_input, 102);
  EXPECT_EQ(m.total_input_nominal, 100);
  ASSERT_EQ(warnings(records, m).size(), 1u);
  EXPECT_NE(warnings(records, m)[0].find("102 prompt tokens"), std::string::npos);
  records[0].served_prompt_tokens = -1;
  records[0].output_len = 20;
  records[0].completion_tokens = -1;
  m = compute_metrics(records);
  EXPECT_EQ(warnings(records, m).size(), 2u);
}

// B119: the server's count wins over what the text encodes to.
TEST(Metrics, CountsOfTokens) {
  RequestRecord r = record(0, 10, 10, 100);
  r.num_retokenized = 7;
  EXPECT_EQ(r.num_output_tokens(), 100);
  EXPECT_EQ(compute_metrics(std::vector{r}).total_output_retokenized, 7);
  r.completion_tokens = -1;
  EXPECT_EQ(r.num_output_tokens(), 7);
  r.num_retokenized = 0;
  EXPECT_EQ(r.num_output_tokens(), 100);
}

TEST(Statistics, PercentilesAsNumPys) {
  const Summary s = summarize({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.mean, 2.5);
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.std, std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(s.p90, 3.7);
  EXPECT_DOUBLE_EQ(s.p99, 3.97);
  EXPECT_DOUBLE_EQ(s.max, 4);
  EXPECT_DOUBLE_EQ(summarize({7}).p99, 7);
}

}  // namespace
}  // namespace winnow::bench
