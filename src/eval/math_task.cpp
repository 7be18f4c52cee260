#include "eval/math_task.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "eval/math_answer.h"
#include "eval/number_answer.h"
#include "eval/prompt_sampling.h"
#include "eval/text_folding.h"

namespace winnow::eval {
namespace {

constexpr int64_t kLargestAime = 999;

std::string solve_prompt(const std::string& problem) {
  return "Solve this problem step by step. Write the final result on the last line of your answer, "
         "in the form 'Answer: RESULT' (without quotes), with no words behind it.\n\n" +
         problem;
}

std::string first_of(const Record& row, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (std::string text = row.text_or_empty(name); !text.empty()) return text;
  }
  return row.text(*names.begin());
}

std::string problem_of(const Record& row) {
  return first_of(row, {"question", "Question", "problem"});
}
std::string answer_of(const Record& row) { return first_of(row, {"answer", "Answer"}); }

// Python's int(float(text)), where it is a whole number of the exam.
std::optional<int64_t> read_float(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  if (value <= -1 || value >= kLargestAime + 1) return std::nullopt;
  return static_cast<int64_t>(value);
}

// What stands behind the first "Answer:" that has something behind it on its line.
std::optional<std::string> first_answer_line(std::string_view text) {
  const std::string lower = lower_ascii(text);
  for (size_t at = 0; (at = lower.find("answer", at)) != std::string::npos; at += 6) {
    const size_t colon = lower.find_first_not_of(" \t\r\n", at + 6);
    if (colon == std::string::npos || lower[colon] != ':') continue;
    const size_t begin = lower.find_first_not_of(" \t\r\n", colon + 1);
    if (begin == std::string::npos) return std::nullopt;
    return std::string(text.substr(begin, text.find('\n', begin) - begin));
  }
  return std::nullopt;
}

Verdict grade_aime(const std::string& label, std::string_view answer, bool parity) {
  std::optional<int64_t> value;
  if (parity) {
    const auto line = first_answer_line(answer);
    if (line) value = read_float(*line);
  } else if (const auto stated = stated_math_answer(answer)) {
    const auto number = last_number(*stated);
    if (number) value = read_float(number->text);
  }
  if (!value) return {};
  const std::string extracted = std::to_string(*value);
  return {extracted, extracted == label ? Outcome::kRight : Outcome::kWrong};
}

Verdict grade_math(const std::string& label, std::string_view answer) {
  auto stated = stated_math_answer(answer);
  if (!stated) return {};
  const bool right = same_math(*stated, label);
  return {std::move(*stated), right ? Outcome::kRight : Outcome::kWrong};
}

}  // namespace

Task math_task(std::vector<Record> rows, int64_t num_examples) {
  Task task;
  task.name = "math";
  bench::PythonRandom random(0);
  std::vector<std::string> labels;
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) order.push_back(i);
  for (const size_t i : sampled(std::move(order), num_examples, random)) {
    labels.push_back(answer_of(rows[i]));
    task.questions.push_back({.id = fmt::format("math/{}", i),
                              .prompt = solve_prompt(problem_of(rows[i])),
                              .label = labels.back(),
                              .category = rows[i].text_or_empty("level")});
  }
  task.grade = [labels = std::move(labels)](size_t i, std::string_view answer) {
    return grade_math(labels[i], answer);
  };
  task.settings = {{"scorer", "local mathematics checker"}, {"num_examples", num_examples}};
  return task;
}

Task aime_task(std::vector<Record> rows, const AimeOptions& options) {
  Task task;
  task.name = "aime";
  bench::PythonRandom random(0);
  std::vector<std::string> labels;
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) order.push_back(i);
  for (const size_t i : sampled(std::move(order), options.num_examples, random)) {
    const std::optional<int64_t> label = read_float(answer_of(rows[i]));
    if (!label) throw_error("{}: \"answer\" must be a number from 0 to 999", rows[i].where());
    labels.push_back(std::to_string(*label));
    task.questions.push_back({.id = fmt::format("aime/{}", i),
                              .prompt = solve_prompt(problem_of(rows[i])),
                              .label = labels.back(),
                              .category = ""});
  }
  task.grade = [labels = std::move(labels), parity = options.parity](size_t i,
                                                                     std::string_view answer) {
    return grade_aime(labels[i], answer, parity);
  };
  task.settings = {{"scorer", options.parity ? "first answer line" : "whole number"},
                   {"num_examples", options.num_examples}};
  return task;
}

}  // namespace winnow::eval
