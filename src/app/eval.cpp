#include "app/eval.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "app/eval_compare.h"
#include "app/eval_task.h"
#include "app/interrupt.h"
#include "app/output_path.h"
#include "app/server_url.h"
#include "base/error.h"
#include "eval/model_name.h"
#include "eval/runner.h"

namespace winnow::app {
namespace {

std::string default_output(const std::string& eval_name, const std::string& model) {
  std::string name = model;
  std::replace(name.begin(), name.end(), '/', '_');
  while (name.starts_with('_') || name.starts_with('.')) name.erase(0, 1);
  const std::string stem = fmt::format("eval_results/{}_{}_{:%Y%m%d-%H%M%S}", eval_name, name,
                                       fmt::localtime(std::time(nullptr)));
  std::string path = stem + ".jsonl";
  for (int n = 2; std::filesystem::exists(path); ++n) path = fmt::format("{}-{}.jsonl", stem, n);
  return path;
}

// What scores depend on: the same for two runs that may be compared.
json::Object all_settings(const eval::Task& task, const eval::RequestSettings& request) {
  json::Object settings = task.settings;
  settings.emplace_back("questions", eval::questions_fingerprint(task));
  settings.emplace_back("api", eval::request_target(request.api));
  settings.emplace_back("max_tokens", request.max_tokens);
  settings.emplace_back("temperature", request.temperature);
  settings.emplace_back("top_p", request.top_p);
  if (request.top_k) settings.emplace_back("top_k", *request.top_k);
  if (request.min_p) settings.emplace_back("min_p", *request.min_p);
  if (request.seed) settings.emplace_back("seed", *request.seed);
  settings.emplace_back("chat_template_kwargs", request.chat_template_kwargs);
  settings.emplace_back("reasoning_effort", request.reasoning_effort);
  return settings;
}

std::vector<std::string> all_notes(const EvalOptions& options,
                                   const eval::Task& task,
                                   int64_t num_earlier) {
  std::vector<std::string> notes = task.notes;
  if (num_earlier > 0) {
    notes.push_back(fmt::format(
        "{} answers are of an earlier run: latency and throughput are of the rest.", num_earlier));
  }
  if (options.repeat > 1 && options.temperature == 0) {
    notes.emplace_back(
        "At temperature 0 the repeats differ only as far as the server is not deterministic: "
        "their error says nothing about the model.");
  }
  return notes;
}

eval::RunnerOptions runner_options(const EvalOptions& options,
                                   const eval::RequestSettings& request) {
  // Repeats run side by side, each with its own share of requests in flight.
  constexpr int64_t kMostInFlight = 65536;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {.url = server_url(options.base_url, options.host, options.port),
          .headers = bench::authorization_from_environment(),
          .request = request,
          .repeats = options.repeat,
          .parallel = std::min(kMostInFlight, options.num_threads * options.repeat),
          .max_retries = options.max_retries,
          .timeout_s = options.timeout,
          .grading_threads = options.eval_name == "humaneval" ? cores : 1};
}

void finish(const EvalReport& report, bool interrupted) {
  write_eval_reports(report);
  if (interrupted) throw_error("interrupted; --resume {} goes on with it", report.samples_path);
  if (report.summary.num_failed > 0) {
    throw_error("{} requests failed and are in no score; --resume {} asks them again",
                report.summary.num_failed, report.samples_path);
  }
  const eval::Summary& s = report.summary;
  if (s.num_refused > 0 && s.num_right + s.num_wrong + s.num_invalid == 0) {
    throw_error("the server refused every request: {}", s.first_error);
  }
}

void print(const EvalOptions& options, const EvalReport& report) {
  const std::string text =
      options.json ? json::dump(eval_report_json(report)) + "\n" : eval_report_text(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Command eval_of(const std::string& name, std::string help) {
  struct State {
    explicit State(const std::string& name)
        : options(default_eval_options(name)), table(eval_option_table(options, name)) {}
    EvalOptions options;
    OptionTable table;
  };
  auto state = std::make_shared<State>(name);
  return make_command(name, std::move(help), state, [state] {
    state->table.apply();
    run_eval(state->options);
  });
}

}  // namespace

EvalReport run_eval(const EvalOptions& options) {
  eval::RequestSettings request = request_settings(options);
  const bench::Url url = server_url(options.base_url, options.host, options.port);
  const eval::Task task = make_eval_task(options);
  eval::check_ids_differ(task);
  check_writable("--result-file", options.result_file);
  if (request.model.empty()) {
    request.model = eval::ask_model_name(url, bench::authorization_from_environment(), request.api);
  }
  const eval::SampleFileHeader header{.task = task.name,
                                      .model = request.model,
                                      .server = url.text(),
                                      .repeats = options.repeat,
                                      .num_questions = static_cast<int64_t>(task.questions.size()),
                                      .common_prefix = task.common_prefix,
                                      .settings = all_settings(task, request)};
  const bool resumes = !options.resume.empty();
  const std::string path = resumes                  ? options.resume
                           : options.output.empty() ? default_output(task.name, request.model)
                                                    : options.output;
  eval::SampleFile file =
      resumes ? eval::SampleFile::resume(path, header) : eval::SampleFile::create(path, header);
  std::vector<eval::Sample> earlier;
  if (resumes) earlier = eval::read_earlier_samples(path);
  const std::vector<std::string> notes = all_notes(options, task, std::ssize(earlier));
  eval::ProgressLine progress;
  const eval::RunResult result =
      eval::run_task(task, runner_options(options, request), std::move(earlier), file, progress,
                     watch_for_interrupt());
  EvalReport report = make_eval_report(header, notes, result, path);
  if (options.print) print(options, report);
  if (!options.result_file.empty()) append_result_line(options, report);
  finish(report, result.interrupted);
  return report;
}

Command eval_command() {
  return {.name = "eval",
          .help = "Measure how well a server's model answers",
          .subcommands = {
              eval_of("gsm8k", "Grade-school word problems after worked examples"),
              eval_of("gpqa", "Graduate-level multiple choice"),
              eval_of("mmlu", "Multiple choice over 57 subjects"),
              eval_of("math", "Competition mathematics, checked without another model"),
              eval_of("aime", "Competition mathematics with whole numbers as answers"),
              eval_of("humaneval", "Python functions, judged by running tests"),
              eval_of("longbench_v2", "Multiple choice over long texts"),
              eval_of("needle", "A number hidden in a long text"),
              eval_compare_command(),
          }};
}

}  // namespace winnow::app
