#include "bench/serving_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/table.h"

namespace winnow::bench {

namespace {

constexpr int kColumns = 50;

class Report {
 public:
  void title(std::string_view text) { out_ += fmt::format("\n{:=^{}}\n", text, kColumns); }
  void section(std::string_view text) { out_ += fmt::format("{:-^{}}\n", text, kColumns); }
  void line(std::string_view label, std::string_view value) {
    out_ += fmt::format("{:<40} {:<10}\n", label, value);
  }
  void line(std::string_view label, int64_t value) { line(label, std::to_string(value)); }
  void line(std::string_view label, double value) {
    line(label, std::isfinite(value) ? fmt::format("{:.2f}", value) : std::string("-"));
  }
  std::string end() { return out_ + std::string(kColumns, '=') + "\n"; }

 private:
  std::string out_;
};

// Which percentiles the reference report prints of a figure.
struct Shown {
  bool p90 = false;
  bool p95 = false;
  bool max = false;
};

void figure(Report& out,
            std::string_view section,
            std::string_view name,
            const Summary& s,
            Shown shown,
            bool all) {
  out.section(section);
  const auto label = [&](std::string_view what) { return fmt::format("{} {} (ms):", what, name); };
  out.line(label("Mean"), s.mean);
  out.line(label("Median"), s.median);
  if (shown.p90 || all) out.line(label("P90"), s.p90);
  if (shown.p95 || all) out.line(label("P95"), s.p95);
  out.line(label("P99"), s.p99);
  if (shown.max) out.line(label("Max"), s.max);
}

std::string rate_text(const ServingOptions& options) {
  if (options.use_trace_timestamps) return "trace";
  if (options.request_rate <= 0) return "inf";
  std::string text;
  json::append_double(text, options.request_rate);
  return text;
}

void totals(Report& out, const ServingOptions& options, const Metrics& m) {
  out.line("Backend:", options.format->name);
  out.line("Traffic request rate:", rate_text(options));
  out.line("Max request concurrency:", options.max_concurrency > 0
                                           ? std::to_string(options.max_concurrency)
                                           : std::string("not set"));
  out.line("Successful requests:", m.completed);
  out.line("Benchmark duration (s):", m.duration_s);
  out.line("Total input tokens:", m.total_input);
  out.line("Total input text tokens:", m.total_input);
  out.line("Total generated tokens:", m.total_output);
  out.line("Total generated tokens (retokenized):", m.total_output_retokenized);
  out.line("Request throughput (req/s):", m.request_throughput);
  out.line("Input token throughput (tok/s):", m.input_throughput);
  out.line("Output token throughput (tok/s):", m.output_throughput);
  out.line("Peak output token throughput (tok/s):", m.max_output_tokens_per_s);
  out.line("Peak concurrent requests:", m.max_concurrent_requests);
  out.line("Total token throughput (tok/s):", m.total_throughput);
  out.line("Concurrency:", m.concurrency);
  if (m.accept_length > 0) out.line("Accept length:", m.accept_length);
}

void goodput(Report& out, const Slos& slos, const Goodput& g) {
  out.section("Goodput");
  out.line("Request goodput (req/s):", g.requests_per_s);
  out.line("SLO attainment (%):", 100 * g.attainment);
  const auto kept = [&](std::string_view name, const std::optional<double>& slo, double share) {
    if (slo) out.line(fmt::format("{} <= {:g} ms (%):", name, *slo), 100 * share);
  };
  kept("TTFT", slos.ttft_ms, g.ttft_attainment);
  kept("TPOT", slos.tpot_ms, g.tpot_attainment);
  kept("E2EL", slos.e2el_ms, g.e2el_attainment);
}

void cache_details(Report& out, const Metrics& m) {
  out.section("Cache Hit Details");
  out.line("Total prompt tokens:", m.total_input);
  out.line("Total cached tokens:", std::max(m.cached_tokens, int64_t{0}));
  out.line("Cache hit rate:", fmt::format("{:.1f}%", 100 * m.cached_share));
}

void beyond(Report& out, const Metrics& m) {
  out.section("Beyond SGLang's report");
  out.line("Failed requests:", m.failed);
  out.line("Nominal input tokens:", m.total_input_nominal);
  if (m.cached_tokens >= 0) out.line("Cached share of input (%):", 100 * m.cached_share);
  out.line("Peak concurrent requests (exact):", m.peak_concurrent_requests);
  out.line("Mean time to first text (ms):", m.first_text.mean);
  out.line("Mean E2E with client queue (ms):", m.e2e_queued.mean);
  out.line("P99 E2E with client queue (ms):", m.e2e_queued.p99);
  const SteadyWindow& w = m.steady;
  out.line("Steady window (s):", w.seconds());
  if (w.seconds() > 0) {
    out.line("Steady concurrency:", w.mean_in_flight);
    out.line("Steady output throughput (tok/s):", static_cast<double>(w.num_tokens) / w.seconds());
  }
}

}  // namespace

std::string serving_report(const ServingOptions& options,
                           const Metrics& m,
                           const ReportOptions& report) {
  Report out;
  const bool all = report.all_percentiles;
  out.title(" Serving Benchmark Result ");
  totals(out, options, m);
  if (m.goodput) goodput(out, options.slos, *m.goodput);
  figure(out, "End-to-End Latency", "E2E Latency", m.e2e, {.p90 = true}, all);
  figure(out, "Time to First Token", "TTFT", m.ttft, {}, all);
  figure(out, "Time per Output Token (excl. 1st token)", "TPOT", m.tpot, {}, all);
  figure(out, "Inter-Token Latency", "ITL", m.itl, {.p95 = true, .max = true}, all);
  if (report.cache_report) cache_details(out, m);
  beyond(out, m);
  return out.end();
}

std::string sweep_table(const std::string& swept, const std::vector<SweepPoint>& points) {
  Table table({">" + swept, ">completed", ">failed", ">req/s", ">output tok/s", ">TTFT mean ms",
               ">TTFT P99 ms", ">TPOT mean ms", ">ITL P99 ms", ">E2E mean ms", ">tok/s a user"});
  const auto two = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.2f}", value) : std::string("-");
  };
  for (const auto& [value, m] : points) {
    table.add_row({value, std::to_string(m.completed), std::to_string(m.failed),
                   two(m.request_throughput), two(m.output_throughput), two(m.ttft.mean),
                   two(m.ttft.p99), two(m.tpot.mean), two(m.itl.p99), two(m.e2e.mean),
                   two(1000 / m.tpot.mean)});
  }
  return table.to_text();
}

std::string default_output_file(const ServingOptions& options, int month, int day) {
  const DatasetOptions& d = options.dataset;
  const std::string start =
      fmt::format("{}_{:02}{:02}_{}", options.format->name, month, day, d.num_prompts);
  if (!d.name.starts_with("random")) return fmt::format("{}_{}.jsonl", start, d.name);
  return fmt::format("{}_{}_{}.jsonl", start, d.random_input_len, d.random_output_len);
}

}  // namespace winnow::bench
