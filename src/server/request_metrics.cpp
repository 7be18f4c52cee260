#include "server/request_metrics.h"

namespace winnow::server {
namespace {

constexpr double kFirstTokenBounds[] = {0.1, 0.2, 0.4, 0.6, 0.8, 1,  2,   4,   6,
                                        8,   10,  20,  40,  60,  80, 100, 200, 400};
constexpr double kEndToEndBounds[] = {0.1, 0.2, 0.4, 0.6, 0.8, 1,   2,   4,   6,    8,    10,
                                      20,  40,  60,  80,  100, 200, 400, 600, 1200, 1800, 2400};
constexpr double kTokenGapBounds[] = {0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025,
                                      0.03,  0.035, 0.04,  0.06,  0.08, 0.1,   0.2,  0.4,
                                      0.6,   0.8,   1,     2,     4,    6,     8};
constexpr double kTokenCountBounds[] = {100,   300,   500,    1000,   3000,   5000,   10000,
                                        30000, 50000, 100000, 200000, 500000, 1100000};
constexpr double kNsToS = 1e-9;

}  // namespace

RequestMetrics::Values::Values()
    : time_to_first_token_s(kFirstTokenBounds),
      inter_token_latency_s(kTokenGapBounds),
      e2e_latency_s(kEndToEndBounds),
      prompt_tokens_histogram(kTokenCountBounds),
      generation_tokens_histogram(kTokenCountBounds) {}

void RequestMetrics::on_start(bool streaming, int64_t num_sequences) {
  std::lock_guard lock(mutex_);
  (streaming ? values_.requests_streaming : values_.requests_whole) += num_sequences;
}

void RequestMetrics::on_refused() {
  std::lock_guard lock(mutex_);
  ++values_.refused;
}

void RequestMetrics::on_first_token(int64_t since_arrival_ns) {
  std::lock_guard lock(mutex_);
  values_.time_to_first_token_s.observe(static_cast<double>(since_arrival_ns) * kNsToS);
}

void RequestMetrics::on_tokens_gap(int64_t gap_ns, int64_t num_tokens) {
  const double each = static_cast<double>(gap_ns) * kNsToS / static_cast<double>(num_tokens);
  std::lock_guard lock(mutex_);
  values_.inter_token_latency_s.observe(each, num_tokens);
}

void RequestMetrics::on_generated(int64_t num_tokens) {
  std::lock_guard lock(mutex_);
  values_.generation_tokens += num_tokens;
}

void RequestMetrics::on_finish(const ChoiceOutput& output, int64_t latency_ns) {
  std::lock_guard lock(mutex_);
  switch (output.finish()) {
    case engine::FinishReason::kStop:
      ++values_.finished_stop;
      break;
    case engine::FinishReason::kLength:
      ++values_.finished_length;
      break;
    case engine::FinishReason::kAbort:
      ++values_.finished_abort;
      break;
    case engine::FinishReason::kNone:
    case engine::FinishReason::kError:
      ++values_.finished_error;
      break;
  }
  values_.prompt_tokens += output.prompt_tokens();
  values_.cached_tokens += output.cached_tokens();
  values_.prompt_tokens_histogram.observe(static_cast<double>(output.prompt_tokens()));
  values_.generation_tokens_histogram.observe(static_cast<double>(output.completion_tokens()));
  values_.e2e_latency_s.observe(static_cast<double>(latency_ns) * kNsToS);
}

void RequestMetrics::on_failure(int64_t num_sequences) {
  std::lock_guard lock(mutex_);
  values_.finished_error += num_sequences;
}

RequestMetrics::Values RequestMetrics::values() const {
  std::lock_guard lock(mutex_);
  return values_;
}

}  // namespace winnow::server
