// The result of a serving run as JSON: SGLang's keys in their order, then ours.
#include <cmath>

#include "bench/serving_report.h"

namespace winnow::bench {

namespace {

json::Value or_null(int64_t value) { return value > 0 ? json::Value(value) : json::Value(); }

void append_summary(json::Object& out, const std::string& name, const Summary& s) {
  for (const auto& [statistic, value] :
       {std::pair{"mean", s.mean}, std::pair{"median", s.median}, std::pair{"std", s.std},
        std::pair{"p90", s.p90}, std::pair{"p95", s.p95}, std::pair{"p99", s.p99}}) {
    out.emplace_back(fmt::format("{}_{}_ms", statistic, name), value);
  }
}

json::Value rate_value(const ServingOptions& options) {
  if (options.use_trace_timestamps) return "trace";
  return options.request_rate > 0 ? json::Value(options.request_rate) : json::Value("inf");
}

void append_arguments(json::Object& out, const ServingOptions& options, const std::string& tag) {
  const DatasetOptions& d = options.dataset;
  out.emplace_back("tag", tag.empty() ? json::Value() : json::Value(tag));
  out.emplace_back("backend", options.format->name);
  out.emplace_back("dataset_name", d.name);
  out.emplace_back("request_rate", rate_value(options));
  out.emplace_back("max_concurrency", or_null(options.max_concurrency));
  out.emplace_back("sharegpt_output_len", or_null(d.sharegpt_output_len));
  out.emplace_back("random_input_len", d.random_input_len);
  out.emplace_back("random_output_len", d.random_output_len);
  out.emplace_back("random_range_ratio", d.random_range_ratio);
}

void append_shared(json::Object& out, const Metrics& m) {
  out.emplace_back("duration", m.duration_s);
  out.emplace_back("completed", m.completed);
  out.emplace_back("total_input_tokens", m.total_input);
  out.emplace_back("total_input_text_tokens", m.total_input);
  out.emplace_back("total_input_vision_tokens", 0);
  out.emplace_back("total_output_tokens", m.total_output);
  out.emplace_back("total_output_tokens_retokenized", m.total_output_retokenized);
  out.emplace_back("request_throughput", m.request_throughput);
  out.emplace_back("input_throughput", m.input_throughput);
  out.emplace_back("output_throughput", m.output_throughput);
  out.emplace_back("total_throughput", m.total_throughput);
  append_summary(out, "e2e_latency", m.e2e);
  append_summary(out, "ttft", m.ttft);
  append_summary(out, "tpot", m.tpot);
  append_summary(out, "itl", m.itl);
  out.emplace_back("concurrency", m.concurrency);
  out.emplace_back("accept_length",
                   m.accept_length > 0 ? json::Value(m.accept_length) : json::Value());
  out.emplace_back("max_output_tokens_per_s", m.max_output_tokens_per_s);
  out.emplace_back("max_concurrent_requests", m.max_concurrent_requests);
}

json::Value steady_object(const SteadyWindow& w) {
  const double seconds = w.seconds();
  return json::Object{
      {"duration", seconds},
      {"min_in_flight", w.min_in_flight},
      {"concurrency", w.mean_in_flight},
      {"completed", w.num_completed},
      {"output_tokens", w.num_tokens},
      {"output_throughput", seconds > 0 ? static_cast<double>(w.num_tokens) / seconds : 0.0}};
}

void append_goodput(json::Object& out, const Slos& slos, const Goodput& g) {
  json::Object limits;
  json::Object kept;
  const auto add = [&](const char* name, const std::optional<double>& slo, double share) {
    if (!slo) return;
    limits.emplace_back(name, *slo);
    kept.emplace_back(name, share);
  };
  add("ttft", slos.ttft_ms, g.ttft_attainment);
  add("tpot", slos.tpot_ms, g.tpot_attainment);
  add("e2el", slos.e2el_ms, g.e2el_attainment);
  out.emplace_back("goodput_slos_ms", std::move(limits));
  out.emplace_back("request_goodput", g.requests_per_s);
  out.emplace_back("slo_attainment", g.attainment);
  out.emplace_back("slo_attainment_by_metric", std::move(kept));
}

void append_ours(json::Object& out, const ServingOptions& options, const ServingResult& result) {
  const Metrics& m = result.metrics;
  out.emplace_back("failed", m.failed);
  out.emplace_back("first_error", m.failed > 0 ? json::Value(m.first_error) : json::Value());
  out.emplace_back("max_itl_ms", m.itl.max);
  out.emplace_back("total_input_tokens_nominal", m.total_input_nominal);
  out.emplace_back("cached_tokens",
                   m.cached_tokens >= 0 ? json::Value(m.cached_tokens) : json::Value());
  out.emplace_back("cached_share",
                   m.cached_tokens >= 0 ? json::Value(m.cached_share) : json::Value());
  out.emplace_back("peak_concurrent_requests", m.peak_concurrent_requests);
  append_summary(out, "first_text", m.first_text);
  append_summary(out, "e2e_queued", m.e2e_queued);
  out.emplace_back("steady", steady_object(m.steady));
  if (m.goodput) append_goodput(out, options.slos, *m.goodput);
  out.emplace_back("seed", options.seed);
  out.emplace_back("client_cpu_s", result.client_cpu_s);
}

void append_details(json::Object& out, const std::vector<RequestRecord>& records) {
  json::Array input_lens, output_lens, ttfts, itls, texts, errors, cached;
  for (const RequestRecord& r : records) {
    input_lens.emplace_back(r.num_prompt_tokens());
    output_lens.emplace_back(r.ok() ? r.num_output_tokens() : int64_t{0});
    ttfts.emplace_back(r.events.empty() ? 0.0 : ttft_s(r));
    std::vector<double> gaps;
    append_itls(r, gaps);
    itls.emplace_back(json::Array(gaps.begin(), gaps.end()));
    texts.emplace_back(r.text);
    errors.emplace_back(r.error);
    cached.emplace_back(std::max(r.cached_tokens, int64_t{0}));
  }
  out.emplace_back("input_lens", std::move(input_lens));
  out.emplace_back("output_lens", std::move(output_lens));
  out.emplace_back("ttfts", std::move(ttfts));
  out.emplace_back("itls", std::move(itls));
  out.emplace_back("generated_texts", std::move(texts));
  out.emplace_back("errors", std::move(errors));
  out.emplace_back("cached_tokens_by_request", std::move(cached));
}

}  // namespace

json::Value serving_json(const ServingOptions& options,
                         const ServingResult& result,
                         const ReportOptions& report) {
  const Metrics& m = result.metrics;
  json::Object out;
  append_arguments(out, options, report.tag);
  out.emplace_back("server_info", result.server_info);
  append_shared(out, m);
  if (report.cache_report) {
    out.emplace_back(
        "cache_report",
        json::Object{{"total_prompt_tokens", m.total_input},
                     {"total_cached_tokens", std::max(m.cached_tokens, int64_t{0})},
                     {"cache_hit_rate_pct", std::round(10000 * m.cached_share) / 100}});
  }
  append_ours(out, options, result);
  if (result.num_interrupted > 0) out.emplace_back("interrupted", result.num_interrupted);
  if (report.details) append_details(out, result.records);
  return out;
}

}  // namespace winnow::bench
