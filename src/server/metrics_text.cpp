#include "server/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace winnow::server {
namespace {

std::string escaped_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

class TextWriter {
 public:
  explicit TextWriter(std::string_view model_name)
      : labels_(fmt::format("model_name=\"{}\"", escaped_label(model_name))) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("sglang:{}", name);
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  void sample(double value, std::string_view label = "") {
    out_ +=
        fmt::format("{}{{{}{}{}}} {}\n", name_, labels_, label.empty() ? "" : ",", label, value);
  }
  void counter(std::string_view name, std::string_view help, int64_t value) {
    family(name, "counter", help);
    sample(static_cast<double>(value));
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    family(name, "gauge", help);
    sample(std::max(0.0, value));
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    family(name, "histogram", help);
    int64_t total = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      total += histogram.counts()[i];
      const bool last = i == histogram.bounds().size();
      out_ += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name_, labels_,
                          last ? "+Inf" : fmt::format("{}", histogram.bounds()[i]), total);
    }
    out_ += fmt::format("{}_sum{{{}}} {}\n", name_, labels_, histogram.sum());
    out_ += fmt::format("{}_count{{{}}} {}\n", name_, labels_, total);
  }
  std::string take() { return std::move(out_); }

 private:
  const std::string labels_;
  std::string name_;
  std::string out_;
};

void write_requests(TextWriter& writer, const RequestMetrics::Values& v) {
  writer.family("num_requests_total", "counter", "Sequences taken in, by way of answer.");
  writer.sample(static_cast<double>(v.requests_streaming), "is_streaming=\"true\"");
  writer.sample(static_cast<double>(v.requests_whole), "is_streaming=\"false\"");
  writer.family("num_finished_requests_total", "counter", "Sequences that ended, by reason.");
  writer.sample(static_cast<double>(v.finished_stop), "reason=\"stop\"");
  writer.sample(static_cast<double>(v.finished_length), "reason=\"length\"");
  writer.sample(static_cast<double>(v.finished_abort), "reason=\"abort\"");
  writer.sample(static_cast<double>(v.finished_error), "reason=\"error\"");
  writer.counter("num_aborted_requests_total", "Sequences that were aborted.", v.finished_abort);
  writer.counter("num_refused_requests_total", "Requests refused before they ran.", v.refused);
  writer.counter("prompt_tokens_total", "Prompt tokens of ended sequences.", v.prompt_tokens);
  writer.counter("generation_tokens_total", "Tokens generated.", v.generation_tokens);
  writer.family("cached_tokens_total", "counter", "Prompt tokens taken from the prefix cache.");
  writer.sample(static_cast<double>(v.cached_tokens), "cache_source=\"device\"");
  writer.histogram("time_to_first_token_seconds", "From arrival to the first token.",
                   v.time_to_first_token_s);
  writer.histogram("inter_token_latency_seconds", "Between tokens of one sequence.",
                   v.inter_token_latency_s);
  writer.histogram("e2e_request_latency_seconds", "From arrival to the end.", v.e2e_latency_s);
  writer.histogram("prompt_tokens_histogram", "Prompt lengths.", v.prompt_tokens_histogram);
  writer.histogram("generation_tokens_histogram", "Answer lengths.", v.generation_tokens_histogram);
}

void write_engine(TextWriter& writer, const engine::EngineStats& s, int64_t page_size) {
  const int64_t used_pages = s.total_pages - s.free_pages - s.cached_pages;
  const double usage = s.total_pages > 0
                           ? static_cast<double>(used_pages) / static_cast<double>(s.total_pages)
                           : 0.0;
  const double hit_rate = s.prompt_tokens > 0 ? static_cast<double>(s.cached_tokens) /
                                                    static_cast<double>(s.prompt_tokens)
                                              : 0.0;
  auto tokens = [&](int64_t pages) { return static_cast<double>(pages * page_size); };
  writer.gauge("num_running_reqs", "Sequences being run.", static_cast<double>(s.num_running));
  writer.gauge("num_queue_reqs", "Sequences that wait.", static_cast<double>(s.num_queued));
  writer.gauge("gen_throughput", "Tokens generated a second.", s.generation_tokens_per_second);
  writer.gauge("cache_hit_rate", "Share of prompt tokens found in the cache.", hit_rate);
  writer.gauge("token_usage", "Share of the pool in use by sequences.", usage);
  writer.gauge("num_used_tokens", "Tokens held by sequences.", tokens(used_pages));
  writer.gauge("kv_used_tokens", "Tokens held by sequences.", tokens(used_pages));
  writer.gauge("kv_available_tokens", "Tokens of free pages.", tokens(s.free_pages));
  writer.gauge("kv_evictable_tokens", "Tokens held by the prefix cache.", tokens(s.cached_pages));
  writer.gauge("max_total_num_tokens", "Tokens of the whole pool.", tokens(s.total_pages));
  writer.counter("num_retracted_reqs_total", "Sequences preempted.", s.preemptions);
  writer.counter("num_engine_steps_total", "Passes of the engine's loop.", s.steps);
  writer.gauge("engine_alive", "1 while the engine's thread runs.", s.alive ? 1 : 0);
}

}  // namespace

std::string metrics_text(const RequestMetrics::Values& values,
                         const engine::EngineStats& stats,
                         int64_t page_size,
                         std::string_view model_name) {
  TextWriter writer(model_name);
  write_requests(writer, values);
  write_engine(writer, stats, page_size);
  return writer.take();
}

}  // namespace winnow::server
