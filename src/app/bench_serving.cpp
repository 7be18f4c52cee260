#include "app/bench_serving.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>

#include "app/bench_serving_options.h"
#include "app/interrupt.h"
#include "app/output_path.h"
#include "base/error.h"
#include "base/log.h"
#include "bench/serving_plot.h"

namespace winnow::app {

namespace {

void append_line(const std::string& path, const json::Value& value) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << json::dump(value, json::Style::kPython) << '\n';
  if (!file.flush()) throw_error("--output-file {}: cannot be written", path);
}

void write_plot(const std::string& path, const std::string& svg) {
  std::ofstream file(path, std::ios::binary);
  file << svg;
  if (!file.flush()) throw_error("--plot {}: cannot be written", path);
}

std::string output_file(const BenchServingOptions& options, const bench::ServingOptions& serving) {
  if (!options.output_file.empty()) return options.output_file;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return bench::default_output_file(serving, local.tm_mon + 1, local.tm_mday);
}

std::string plot_title(const bench::ServingOptions& options) {
  return fmt::format("winnow bench serving: {} at {}, {} prompts of {}", options.format->name,
                     options.url.text(), options.dataset.num_prompts, options.dataset.name);
}

// One run with its report, its line of JSON and its warnings.
bench::ServingResult measure(bench::ServingBench& bench,
                             const BenchServingOptions& options,
                             int64_t run_idx) {
  bench::ServingResult result = bench.run(run_idx);
  bench::ServingOptions shown = bench.options();
  shown.seed += run_idx;
  fmt::print("{}", bench::serving_report(shown, result.metrics, options.report));
  std::fflush(stdout);
  for (const std::string& text : bench::warnings(result.records, result.metrics)) {
    log::warn("{}", text);
  }
  append_line(output_file(options, shown), bench::serving_json(shown, result, options.report));
  if (result.num_interrupted > 0) {
    log::warn("interrupted: {} of {} requests had ended and are in the report",
              result.records.size(), result.num_interrupted + std::ssize(result.records));
  }
  return result;
}

struct Outcome {
  bool any = false;  // request succeeded
  bool interrupted = false;
};

Outcome run_sweep(bench::ServingBench& bench, const BenchServingOptions& options) {
  const Sweep sweep = parse_sweep(options.sweep);
  std::vector<bench::SweepPoint> points;
  Outcome outcome;
  for (const double value : sweep.values) {
    if (outcome.interrupted) break;
    if (sweep.name == "concurrency") {
      bench.options().max_concurrency = std::llround(value);
    } else {
      bench.options().request_rate = value;
    }
    const auto run_idx = static_cast<int64_t>(points.size());
    const bench::ServingResult result = measure(bench, options, run_idx);
    points.push_back({fmt::format("{:g}", value), result.metrics});
    outcome.any = outcome.any || result.metrics.completed > 0;
    outcome.interrupted = result.num_interrupted > 0;
  }
  fmt::print("\n{}", bench::sweep_table(sweep.name, points));
  if (!options.plot.empty()) {
    write_plot(options.plot, bench::sweep_plot(plot_title(bench.options()), points));
  }
  return outcome;
}

void run_serving(BenchServingOptions& options, OptionTable& table) {
  table.apply();
  resolve(options);
  if (!options.sweep.empty()) parse_sweep(options.sweep);  // before the wait for the server
  check_writable("--output-file", output_file(options, options.serving));
  check_writable("--plot", options.plot);
  bench::ServingBench bench(options.serving, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
  bench.options().stop = &watch_for_interrupt();
  Outcome outcome;
  if (options.sweep.empty()) {
    const bench::ServingResult result = measure(bench, options, 0);
    outcome = {result.metrics.completed > 0, result.num_interrupted > 0};
    if (!options.plot.empty()) {
      write_plot(options.plot, bench::run_plot(plot_title(bench.options()), result.records));
    }
  } else {
    outcome = run_sweep(bench, options);
  }
  if (outcome.interrupted) throw_error("interrupted");
  if (!outcome.any) throw_error("every request failed");
}

}  // namespace

Command bench_serving_command() {
  struct State {
    BenchServingOptions options;
    OptionTable table = bench_serving_option_table(options);
  };
  auto state = std::make_shared<State>();
  return make_command("serving", "A load on a server, and the report on it", state,
                      [state] { run_serving(state->options, state->table); });
}

}  // namespace winnow::app
