#include "app/bench_serving_options.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "app/server_url.h"
#include "base/error.h"

namespace winnow::app {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMany = INT64_C(1) << 31;
constexpr int64_t kMostPrompts = 1000000;
constexpr int64_t kMostTokens = INT64_C(1) << 24;  // of one prompt or answer

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

double positive(std::string_view flag, const std::string& text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || !(value > 0) ||
      !std::isfinite(value)) {
    throw_error("{}: \"{}\" is no number above 0", flag, text);
  }
  return value;
}

bench::Slos parse_slos(const std::string& text) {
  bench::Slos slos;
  for (const std::string& pair : split(text, ',')) {
    const size_t colon = std::min(pair.find(':'), pair.size());
    const std::string name = pair.substr(0, colon);
    const double limit = positive("--goodput", pair.substr(std::min(colon + 1, pair.size())));
    if (name == "ttft") {
      slos.ttft_ms = limit;
    } else if (name == "tpot") {
      slos.tpot_ms = limit;
    } else if (name == "e2el") {
      slos.e2el_ms = limit;
    } else {
      throw_error("--goodput {}: expected ttft:MS, tpot:MS, e2el:MS", pair);
    }
  }
  return slos;
}

bool is_header_name(std::string_view name) {
  static constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != kSigns.npos;
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

bench::HttpHeaders parse_headers(const std::string& text) {
  bench::HttpHeaders headers;
  for (const std::string& pair : split(text, ',')) {
    const size_t equals = pair.find('=');
    if (equals == pair.npos || !is_header_name(pair.substr(0, equals)) ||
        pair.find_first_of("\r\n") != pair.npos) {
      throw_error("--header {}: expected NAME=VALUE", pair);
    }
    headers.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return headers;
}

void check_size(const bench::DatasetOptions& d) {
  const bool shared = d.name == "generated-shared-prefix";
  const bool random = d.name == "random" || d.name == "random-ids";
  if (!shared && !random) return;
  const int64_t prompts = shared ? d.gsp_num_groups * d.gsp_prompts_per_group : d.num_prompts;
  const int64_t tokens =
      shared ? d.gsp_system_prompt_len + d.gsp_num_turns * d.gsp_question_len : d.random_input_len;
  if (prompts <= kMostPrompts && prompts * tokens <= bench::kMostPromptTokens) return;
  throw_error("{} prompts of {} tokens ({}): at most {} prompts and {} tokens in all", prompts,
              tokens,
              shared ? "--gsp-num-groups, --gsp-prompts-per-group, --gsp-system-prompt-len, "
                       "--gsp-question-len, --gsp-num-turns"
                     : "--num-prompts, --random-input-len",
              kMostPrompts, bench::kMostPromptTokens);
}

void check_shared_prefixes(const BenchServingOptions& o) {
  const bench::ServingOptions& s = o.serving;
  const bench::DatasetOptions& d = s.dataset;
  const bool zipf = o.group_distribution == "zipf";
  if (zipf && d.gsp_zipf_alpha <= 0) {
    throw_error("--gsp-group-distribution zipf wants --gsp-zipf-alpha above 0");
  }
  if (!zipf && d.gsp_zipf_alpha > 0) {
    throw_error("--gsp-zipf-alpha wants --gsp-group-distribution zipf");
  }
  if (d.gsp_num_turns > 1 && s.format->kind != bench::ApiKind::kChat) {
    throw_error("--gsp-num-turns {}: --backend {} has no conversations; take a chat's",
                d.gsp_num_turns, s.format->name);
  }
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& format : bench::backend_formats()) names.emplace_back(format.name);
  return names;
}

void add_target_rows(OptionTable& t, BenchServingOptions& o) {
  bench::ServingOptions& s = o.serving;
  t.section("Server");
  t.choice("--backend", o.backend, backend_names(), "How the server is asked.");
  t.text("--base-url", o.base_url, "URL", "http://HOST:PORT/PATH, in place of host and port.");
  t.text("--host", o.host, "NAME", "Where the server listens.");
  t.integer("--port", o.port, 0, 65535,
            "0: the backend's usual one (30000, vllm and openai 8000).");
  t.number("--ready-check-timeout-sec", s.ready_timeout_s, 0, 86400,
           "Seconds to wait for /v1/models; 0: no check.");
  t.text("--model", s.model, "NAME", "The first of /v1/models where none is given.");
  t.text("--served-model-name", s.served_model_name, "NAME", "What requests say; else --model.");
  t.text("--tokenizer", s.tokenizer, "DIR",
         "Folder of the served model's tokenizer; where the server says it lies, else --model.");
  t.text("--header", o.header, "NAME=VALUE,...", "Sent with every request.");
  t.text("--extra-request-body", o.extra_request_body, "JSON", "Members of every request's body.");
}

void add_load_rows(OptionTable& t, BenchServingOptions& o) {
  bench::ServingOptions& s = o.serving;
  t.section("Load");
  t.integer("--num-prompts", s.dataset.num_prompts, 1, kMostPrompts, "Requests.");
  t.number("--request-rate", o.request_rate, 1e-9, kInfinity,
           "Arrivals a second, at random as Poisson's; inf: all at once.");
  t.integer("--max-concurrency", s.max_concurrency, 0, kMany,
            "Requests in flight at most; 0: no limit.");
  t.toggle("--use-trace-timestamps", s.use_trace_timestamps, "Arrivals as the trace says.");
  t.integer("--warmup-requests", s.warmup_requests, 0, kMany,
            "Copies of the first prompt, 32 tokens each, before the clock starts.");
  t.toggle("--flush-cache", s.flush_cache, "Empties the prefix cache behind the warm-up.");
  t.number("--flush-cache-timeout", s.flush_timeout_s, 0, 86400, "Seconds that it may take.");
  t.integer("--seed", s.seed, 0, UINT32_MAX, "Of lengths, prompts and arrivals.");
  t.toggle("--disable-stream", o.disable_stream, "Whole answers: no TTFT, no ITL.");
  t.toggle("--disable-ignore-eos", o.disable_ignore_eos, "Answers may end before their length.");
  t.number("--temperature", s.request.temperature, 0, 1000, "0: greedy.");
  t.number("--top-p", s.request.top_p, 0, 1, "1: not sent.");
  t.toggle("--tokenize-prompt", s.dataset.as_ids, "Sends token ids instead of text.");
  t.integer("--io-threads", s.io_threads, 0, 64, "Of the client; 0: one for four cores.");
}

void add_dataset_rows(OptionTable& t, BenchServingOptions& o) {
  bench::DatasetOptions& d = o.serving.dataset;
  t.section("Prompts");
  t.choice("--dataset-name", d.name, bench::dataset_names(), "Where prompts come from.");
  t.text("--dataset-path", d.path, "FILE", "ShareGPT's JSON, or JSONL for custom and trace.");
  t.integer("--random-input-len", d.random_input_len, 1, kMostTokens, "Prompt tokens of random.");
  t.integer("--random-output-len", d.random_output_len, 0, kMostTokens, "Answer tokens of random.");
  t.number("--random-range-ratio", d.random_range_ratio, 0, 1,
           "Lengths are drawn between this share of those and the whole.");
  t.integer("--sharegpt-output-len", d.sharegpt_output_len, 0, kMany,
            "Answer tokens; 0: as many as in the data.");
  t.integer("--sharegpt-context-len", d.sharegpt_context_len, 0, kMany,
            "Longer ones are left out; 0: none.");
  t.text("--prompt-suffix", d.prompt_suffix, "TEXT", "Behind each prompt of sharegpt and custom.");
  t.integer("--gsp-num-groups", d.gsp_num_groups, 1, kMostPrompts, "Shared prefixes.");
  t.integer("--gsp-prompts-per-group", d.gsp_prompts_per_group, 1, kMostPrompts,
            "Questions to each.");
  t.integer("--gsp-system-prompt-len", d.gsp_system_prompt_len, 1, kMostTokens,
            "Tokens of a prefix.");
  t.integer("--gsp-question-len", d.gsp_question_len, 1, kMostTokens, "Tokens of a question.");
  t.integer("--gsp-output-len", d.gsp_output_len, 0, kMostTokens, "Tokens of an answer.");
  t.number("--gsp-range-ratio", d.gsp_range_ratio, 0, 1, "As --random-range-ratio.");
  t.integer("--gsp-num-turns", d.gsp_num_turns, 1, 1000,
            "Questions of a conversation, each sent with the answers before it; above 1 with a "
            "chat --backend.");
  t.choice("--gsp-group-distribution", o.group_distribution, {"uniform", "zipf"},
           "As many prompts of each prefix, or the first ones most often.");
  t.number("--gsp-zipf-alpha", d.gsp_zipf_alpha, 0, 1000,
           "Of zipf, above 0: prefix r is drawn in proportion to 1 / r^N.");
  t.toggle("--gsp-ordered", d.gsp_ordered, "Group by group instead of shuffled.");
  t.number("--trace-slowdown-factor", d.trace_slowdown, 1e-9, 1e9,
           "Stretches the trace's arrivals.");
}

void add_output_rows(OptionTable& t, BenchServingOptions& o) {
  t.section("Output");
  t.text("--output-file", o.output_file, "FILE",
         "Gets a line of JSON a run; named after backend, date and lengths where none is given.");
  t.toggle("--output-details", o.report.details, "Every request's figures in it.");
  t.text("--tag", o.report.tag, "TEXT", "Goes into it.");
  t.text("--goodput", o.goodput, "NAME:MS,...",
         "Limits of a good request: ttft:200,tpot:20,e2el:5000.");
  t.toggle("--cache-report", o.report.cache_report, "A section on the prefix cache.");
  t.toggle("--all-percentiles", o.report.all_percentiles, "P90 and P95 in every section.");
  t.text("--plot", o.plot, "FILE.svg", "Draws the run, or the sweep.");
  t.text("--sweep", o.sweep, "NAME=N,...",
         "A run for each of concurrency=1,2,4 or request-rate=1,2,4.");
  t.toggle("--disable-tqdm", o.quiet, "No progress line.");
}

}  // namespace

BenchServingOptions::BenchServingOptions() : request_rate(kInfinity) {}

OptionTable bench_serving_option_table(BenchServingOptions& options) {
  OptionTable table;
  add_target_rows(table, options);
  add_load_rows(table, options);
  add_dataset_rows(table, options);
  add_output_rows(table, options);
  return table;
}

void resolve(BenchServingOptions& o) {
  bench::ServingOptions& s = o.serving;
  s.format = bench::find_backend(o.backend);
  const int64_t port = o.port > 0 ? o.port : s.format->default_port;
  s.url = server_url(o.base_url, o.host, port);
  s.headers = bench::authorization_from_environment();
  for (auto& header : parse_headers(o.header)) s.headers.push_back(std::move(header));
  s.request_rate = o.request_rate == kInfinity ? 0 : o.request_rate;
  s.request.stream = !o.disable_stream;
  s.request.ignore_eos = !o.disable_ignore_eos;
  s.live = !o.quiet;
  s.slos = parse_slos(o.goodput);
  if (!o.extra_request_body.empty()) {
    auto extra = json::parse(o.extra_request_body);
    if (!extra.ok() || !extra.value().is_object()) {
      throw_error("--extra-request-body: expected a JSON object{}{}", extra.ok() ? "" : ": ",
                  extra.ok() ? "" : extra.status().message);
    }
    s.request.extra = std::move(extra.value().as_object());
  }
  if (s.dataset.as_ids && s.format->kind == bench::ApiKind::kChat) {
    throw_error("--tokenize-prompt: a chat has no token ids; take another --backend");
  }
  check_size(s.dataset);
  check_shared_prefixes(o);
  if (s.use_trace_timestamps && s.dataset.name != "trace") {
    throw_error("--use-trace-timestamps wants --dataset-name trace");
  }
}

Sweep parse_sweep(const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  Sweep sweep{.name = text.substr(0, equals), .values = {}};
  if (sweep.name != "concurrency" && sweep.name != "request-rate") {
    throw_error("--sweep {}: expected concurrency=1,2,4 or request-rate=1,2,4", text);
  }
  for (const std::string& value : split(text.substr(std::min(equals + 1, text.size())), ',')) {
    sweep.values.push_back(positive("--sweep", value));
  }
  for (const double value : sweep.values) {
    if (sweep.name == "concurrency" && (value != std::floor(value) || value > kMostPrompts)) {
      throw_error("--sweep {}: {:g} is no whole number up to {}", text, value, kMostPrompts);
    }
  }
  if (sweep.values.empty()) throw_error("--sweep {}: no values", text);
  return sweep;
}

}  // namespace winnow::app
