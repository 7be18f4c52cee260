#include "app/eval_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/table.h"
#include "eval/html_report.h"

namespace winnow::app {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::string gsm8k_lines(const EvalReport& r) {
  return fmt::format(
      "Accuracy: {:.3f}\nInvalid: {:.3f}\nLatency: {:.3f} s\n"
      "Output throughput: {:.3f} token/s\n",
      r.summary.score, r.summary.invalid_share, r.seconds, r.tokens_per_second);
}

std::string one_repeat_lines(const EvalReport& r) {
  return fmt::format("Total latency: {:.3f} s\nScore: {:.3f}\nOutput throughput: {:.3f} token/s\n",
                     r.seconds, r.summary.score, r.tokens_per_second);
}

std::string many_repeats_lines(const EvalReport& r) {
  const std::string rule(20, '=');
  std::vector<std::string> scores;
  for (const double score : r.summary.repeat_scores)
    scores.push_back(fmt::format("'{:.3f}'", score));
  return fmt::format(
      "{0}\nRepeat: {1}, mean: {2:.3f}\nScores: [{3}]\nMean latency: {4:.3f} s\n"
      "Output throughput: {5:.3f} token/s\n{0}\n",
      rule, r.summary.num_repeats, mean_of(r.summary.repeat_scores), fmt::join(scores, ", "),
      mean_of(r.repeat_seconds), r.tokens_per_second);
}

std::string reference_lines(const EvalReport& r) {
  if (r.summary.num_repeats > 1) return many_repeats_lines(r);
  return r.eval_name == "gsm8k" ? gsm8k_lines(r) : one_repeat_lines(r);
}

std::string error_words(const EvalReport& r) {
  std::string out;
  if (r.summary.repeats_error) {
    out +=
        fmt::format(", +- {:.4f} over {} repeats", *r.summary.repeats_error, r.summary.num_repeats);
  }
  if (r.summary.questions_error) {
    out += fmt::format(", +- {:.4f} over {} questions", *r.summary.questions_error,
                       r.summary.num_questions);
  }
  return out.empty() ? out : out + " (standard errors)";
}

// A needle's categories as lengths by depths.
std::string needle_grid(const EvalReport& r) {
  std::map<int64_t, std::map<int64_t, double>> by_depth;
  std::map<int64_t, int> lengths;
  for (const eval::CategoryScore& category : r.summary.categories) {
    const size_t slash = category.name.find('/');
    const int64_t length = std::stoll(category.name.substr(0, slash));
    by_depth[std::stoll(category.name.substr(slash + 1))][length] = category.score;
    lengths[length] = 1;
  }
  std::vector<std::string> titles = {">depth, %"};
  for (const auto& [length, unused] : lengths) titles.push_back(fmt::format(">{}", length));
  Table table(titles);
  for (const auto& [depth, scores] : by_depth) {
    std::vector<std::string> cells = {std::to_string(depth)};
    for (const auto& [length, unused] : lengths) {
      const auto score = scores.find(length);
      cells.push_back(score == scores.end() ? "" : fmt::format("{:.2f}", score->second));
    }
    table.add_row(std::move(cells));
  }
  return table.to_text();
}

std::string category_table(const EvalReport& r) {
  if (r.summary.categories.empty()) return {};
  if (r.eval_name == "needle") return needle_grid(r);
  Table table({"category", ">score", ">samples"});
  for (const eval::CategoryScore& category : r.summary.categories) {
    table.add_row({category.name, fmt::format("{:.3f}", category.score),
                   std::to_string(category.num_samples)});
  }
  return table.to_text();
}

std::string beside(const std::string& samples_path, std::string_view ending) {
  constexpr std::string_view kSamples = ".jsonl";
  const bool usual = samples_path.ends_with(kSamples);
  return samples_path.substr(0, samples_path.size() - (usual ? kSamples.size() : 0)) +
         std::string(ending);
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

EvalReport make_eval_report(const eval::SampleFileHeader& header,
                            const std::vector<std::string>& notes,
                            const eval::RunResult& result,
                            const std::string& samples_path) {
  EvalReport report{.eval_name = header.task,
                    .model = header.model,
                    .server = header.server,
                    .samples_path = samples_path,
                    .notes = notes,
                    .summary = eval::summarize(result.samples),
                    .seconds = result.seconds,
                    .tokens_per_second = 0,
                    .repeat_seconds = result.repeat_seconds,
                    .pass_at = {}};
  if (result.seconds > 0) {
    report.tokens_per_second = static_cast<double>(result.completion_tokens) / result.seconds;
  }
  if (header.task == "humaneval") {
    for (const int64_t k : {1, 2, 5}) {
      if (const auto value = eval::mean_pass_at(result.samples, k)) {
        report.pass_at.emplace_back(k, *value);
      }
    }
  }
  return report;
}

std::string eval_report_text(const EvalReport& r) {
  const eval::Summary& s = r.summary;
  std::string out = reference_lines(r);
  out += fmt::format("\n{} of {} at {}: {:.4f}{}\n", r.eval_name, r.model, r.server, s.score,
                     error_words(r));
  out += fmt::format("{} right, {} wrong, {} invalid, {} refused, {} failed; {} truncated\n",
                     s.num_right, s.num_wrong, s.num_invalid, s.num_refused, s.num_failed,
                     s.num_truncated);
  out += fmt::format("{:.1f} tokens an answer; {} samples needed more than one request\n",
                     s.mean_completion_tokens, s.num_retried);
  if (!s.first_error.empty()) out += "The first without an answer: " + s.first_error + "\n";
  for (const auto& [k, value] : r.pass_at) out += fmt::format("pass@{}: {:.3f}\n", k, value);
  out += category_table(r);
  for (const std::string& note : r.notes) out += "Note: " + note + "\n";
  out += fmt::format("Samples: {}\nPage: {}\n", r.samples_path, beside(r.samples_path, ".html"));
  return out;
}

json::Value eval_report_json(const EvalReport& r) {
  json::Value out = eval::to_json(r.summary);
  out.set("eval", r.eval_name);
  out.set("model", r.model);
  out.set("server", r.server);
  out.set("latency", r.seconds);
  out.set("output_throughput", r.tokens_per_second);
  for (const auto& [k, value] : r.pass_at) out.set(fmt::format("pass@{}", k), value);
  out.set("notes", json::Array(r.notes.begin(), r.notes.end()));
  out.set("samples_file", r.samples_path);
  out.set("page", beside(r.samples_path, ".html"));
  return out;
}

void write_eval_reports(const EvalReport& report) {
  eval::write_html_report(beside(report.samples_path, ".html"), report.samples_path,
                          report.summary);
  const std::string path = beside(report.samples_path, ".json");
  std::ofstream file(path, std::ios::binary);
  file << json::dump(eval_report_json(report)) << "\n";
  if (!file.flush()) throw_error("{}: cannot be written", path);
}

void append_result_line(const EvalOptions& options, const EvalReport& report) {
  const json::Value line = json::Object{
      {"task", "gsm8k"},
      {"backend", options.backend},
      {"num_gpus", 1},
      {"latency", rounded(report.seconds)},
      {"accuracy", rounded(report.summary.score)},
      {"num_requests", options.num_examples},
      {"other",
       json::Object{{"num_questions", options.num_examples}, {"parallel", options.num_threads}}}};
  std::ofstream file(options.result_file, std::ios::binary | std::ios::app);
  file << json::dump(line, json::Style::kPython) << "\n";
  if (!file.flush()) throw_error("--result-file {}: cannot be written", options.result_file);
}

}  // namespace winnow::app
