#include "eval/gsm8k_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "eval/gsm8k_script_number.h"
#include "eval/number_answer.h"

namespace winnow::eval {
namespace {

Verdict grade_by_script(const std::string& label, std::string_view answer) {
  const auto number = gsm8k_script_number(answer);
  if (!number) return {};
  return {*number, *number == label ? Outcome::kRight : Outcome::kWrong};
}

Verdict grade_number(const Number& label, std::string_view answer) {
  const auto number = answer_number(answer);
  if (!number) return {};
  return {number->text, *number == label ? Outcome::kRight : Outcome::kWrong};
}

std::string asked(const Record& row) { return "Question: " + row.text("question") + "\nAnswer:"; }

void add_question(Task& task, const Record& row, size_t row_idx, bool parity) {
  const std::string answer = row.text("answer");
  const size_t mark = answer.rfind("####");
  const auto number = mark == std::string::npos ? std::nullopt : last_number(answer.substr(mark));
  if (!number) throw_error("{}: \"answer\" must end in #### and a number", row.where());
  const std::string label = parity ? gsm8k_script_number(answer).value_or("invalid") : number->text;
  task.questions.push_back({.id = fmt::format("gsm8k/{}", row_idx),
                            .prompt = asked(row),
                            .label = label,
                            .category = ""});
}

}  // namespace

Task gsm8k_task(const std::vector<Record>& rows, const Gsm8kOptions& options) {
  const auto num_shots = static_cast<size_t>(options.num_shots);
  const size_t first = options.parity ? 0 : num_shots;
  if (num_shots > rows.size() || first >= rows.size()) {
    throw_error("--num-shots {}: the data set has {} rows", num_shots, rows.size());
  }
  Task task;
  task.name = "gsm8k";
  for (size_t i = 0; i < num_shots; ++i) {
    task.common_prefix += asked(rows[i]) + " " + rows[i].text("answer") + "\n\n";
  }
  const auto wanted = static_cast<size_t>(options.num_questions);
  const size_t last = wanted == 0 ? rows.size() : std::min(rows.size(), first + wanted);
  for (size_t i = first; i < last; ++i) add_question(task, rows[i], i, options.parity);
  std::vector<Number> numbers;
  std::vector<std::string> labels;
  for (const Question& question : task.questions) {
    labels.push_back(question.label);
    if (!options.parity) numbers.push_back(*last_number(question.label));
  }
  if (options.parity) {
    task.grade = [labels = std::move(labels)](size_t i, std::string_view answer) {
      return grade_by_script(labels[i], answer);
    };
    task.notes.emplace_back(
        "Scored as the old script does: shot rows are asked too, signs and decimals are dropped.");
  } else {
    task.grade = [numbers = std::move(numbers)](size_t i, std::string_view answer) {
      return grade_number(numbers[i], answer);
    };
  }
  if (wanted > last - first) {
    task.notes.push_back(fmt::format("{} of the {} questions asked for: rows {} to {}{}.",
                                     last - first, wanted, first, last - 1,
                                     first > 0 ? ", those after the shots" : ""));
  }
  task.settings = {{"num_shots", options.num_shots},
                   {"scorer", options.parity ? "old script" : "number"}};
  return task;
}

}  // namespace winnow::eval
