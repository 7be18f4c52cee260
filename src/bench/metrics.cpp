#include "bench/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace winnow::bench {

namespace {

constexpr double kMaxCachedShare = 0.01;
constexpr double kMaxLengthDifference = 0.01;

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

double tpot_s(const RequestRecord& r) {
  const int64_t tokens = r.num_output_tokens();
  return tokens > 1 ? (latency_s(r) - ttft_s(r)) / static_cast<double>(tokens - 1) : 0;
}

void add_totals(std::span<const RequestRecord> records, Metrics& m) {
  int64_t first_start = std::numeric_limits<int64_t>::max();
  int64_t first_failed = std::numeric_limits<int64_t>::max();
  int64_t last_end = 0;
  for (const RequestRecord& r : records) {
    first_start = std::min(first_start, r.start_ns);
    last_end = std::max({last_end, r.end_ns, r.last_event_ns});
    if (!r.ok()) {
      ++m.failed;
      if (r.start_ns < first_failed) m.first_error = r.error;
      first_failed = std::min(first_failed, r.start_ns);
      continue;
    }
    ++m.completed;
    m.total_input += r.num_prompt_tokens();
    m.total_input_nominal += r.prompt_len;
    m.total_output += r.num_output_tokens();
    m.total_output_retokenized += r.num_retokenized;
    if (r.cached_tokens >= 0)
      m.cached_tokens = std::max(m.cached_tokens, int64_t{0}) + r.cached_tokens;
  }
  if (last_end > first_start) m.duration_s = static_cast<double>(last_end - first_start) * 1e-9;
  m.request_throughput = per_second(static_cast<double>(m.completed), m.duration_s);
  m.input_throughput = per_second(static_cast<double>(m.total_input), m.duration_s);
  m.output_throughput = per_second(static_cast<double>(m.total_output), m.duration_s);
  m.total_throughput =
      per_second(static_cast<double>(m.total_input + m.total_output), m.duration_s);
  if (m.cached_tokens > 0 && m.total_input > 0) {
    m.cached_share = static_cast<double>(m.cached_tokens) / static_cast<double>(m.total_input);
  }
}

void add_latencies(std::span<const RequestRecord> records, Metrics& m) {
  std::vector<double> e2e, queued, ttft, first_text, tpot, itl, accept;
  double latency_sum_s = 0;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    latency_sum_s += latency_s(r);
    e2e.push_back(latency_s(r) * 1e3);
    queued.push_back(static_cast<double>(r.last_event_ns - r.due_ns) * 1e-6);
    ttft.push_back(ttft_s(r) * 1e3);
    if (r.first_text_ns > 0) {
      first_text.push_back(static_cast<double>(r.first_text_ns - r.start_ns) * 1e-6);
    }
    if (r.num_output_tokens() > 1) tpot.push_back(tpot_s(r) * 1e3);
    append_itls(r, itl);
    if (r.accept_length > 0) accept.push_back(r.accept_length);
  }
  for (double& gap : itl) gap *= 1e3;
  m.concurrency = per_second(latency_sum_s, m.duration_s);
  m.e2e = summarize(std::move(e2e));
  m.e2e_queued = summarize(std::move(queued));
  m.ttft = summarize(std::move(ttft));
  m.first_text = summarize(std::move(first_text));
  m.tpot = summarize(std::move(tpot));
  m.itl = summarize(std::move(itl));
  if (!accept.empty()) m.accept_length = summarize(std::move(accept)).mean;
}

void add_peaks(std::span<const RequestRecord> records, Metrics& m) {
  const Seconds seconds = by_second(records);
  for (const double n : seconds.tokens) {
    m.max_output_tokens_per_s = std::max(m.max_output_tokens_per_s, n);
  }
  for (const double n : seconds.requests) {
    m.max_concurrent_requests = std::max(m.max_concurrent_requests, static_cast<int64_t>(n));
  }
  m.peak_concurrent_requests = peak_in_flight(records);
  m.steady = steady_window(records);
}

Goodput goodput_of(std::span<const RequestRecord> records, const Slos& slos, double duration_s) {
  int64_t good = 0;
  int64_t ttft_kept = 0;
  int64_t tpot_kept = 0;
  int64_t e2el_kept = 0;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    const bool ttft = !slos.ttft_ms || ttft_s(r) * 1e3 <= *slos.ttft_ms;
    const bool tpot = !slos.tpot_ms || tpot_s(r) * 1e3 <= *slos.tpot_ms;
    const bool e2el = !slos.e2el_ms || latency_s(r) * 1e3 <= *slos.e2el_ms;
    ttft_kept += slos.ttft_ms && ttft ? 1 : 0;
    tpot_kept += slos.tpot_ms && tpot ? 1 : 0;
    e2el_kept += slos.e2el_ms && e2el ? 1 : 0;
    good += ttft && tpot && e2el ? 1 : 0;
  }
  const auto sent = static_cast<double>(std::max<size_t>(records.size(), 1));
  return {.requests_per_s = per_second(static_cast<double>(good), duration_s),
          .attainment = static_cast<double>(good) / sent,
          .ttft_attainment = static_cast<double>(ttft_kept) / sent,
          .tpot_attainment = static_cast<double>(tpot_kept) / sent,
          .e2el_attainment = static_cast<double>(e2el_kept) / sent};
}

}  // namespace

Metrics compute_metrics(std::span<const RequestRecord> records, const Slos& slos) {
  Metrics m;
  add_totals(records, m);
  add_latencies(records, m);
  add_peaks(records, m);
  if (slos.any()) m.goodput = goodput_of(records, slos, m.duration_s);
  return m;
}

std::vector<std::string> warnings(std::span<const RequestRecord> records, const Metrics& m) {
  std::vector<std::string> out;
  if (m.failed > 0) {
    out.push_back(fmt::format("{} of {} requests failed; the first: {}", m.failed, records.size(),
                              m.first_error));
  }
  if (m.cached_share > kMaxCachedShare) {
    out.push_back(fmt::format(
        "the server's prefix cache answered {:.1f} % of the prompt tokens: prefill looks faster "
        "than it is (--flush-cache, or another --seed)",
        100 * m.cached_share));
  }
  const auto differ = [](int64_t real, int64_t planned) {
    return std::abs(static_cast<double>(real - planned)) >
           kMaxLengthDifference * static_cast<double>(planned);
  };
  if (m.completed > 0 && differ(m.total_input, m.total_input_nominal)) {
    out.push_back(fmt::format("the server counted {} prompt tokens where {} were planned",
                              m.total_input, m.total_input_nominal));
  }
  int64_t asked = 0;
  int64_t uncounted = 0;
  int64_t events = 0;
  for (const RequestRecord& r : records) {
    if (!r.ok()) continue;
    asked += r.output_len;
    uncounted += r.completion_tokens < 0 ? 1 : 0;
    events += r.events.empty() ? 1 : 0;
  }
  if (m.completed > 0 && differ(m.total_output, asked)) {
    out.push_back(
        fmt::format("{} tokens were generated where {} were asked for", m.total_output, asked));
  }
  if (uncounted > 0) {
    out.push_back(fmt::format(
        "{} answers came without token counts: theirs are from their text encoded again",
        uncounted));
  }
  if (events > 0) {
    out.push_back(fmt::format("{} answers brought no token: their TTFT is their latency", events));
  }
  return out;
}

}  // namespace winnow::bench
