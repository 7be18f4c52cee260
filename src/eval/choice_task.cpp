#include "eval/choice_task.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "eval/choice_answer.h"
#include "eval/prompt_sampling.h"
#include "eval/text_folding.h"

namespace winnow::eval {
namespace {

using Choices = std::array<std::string, 4>;

// The wording that published scores of these exams were taken with.
std::string letter_prompt(const std::string& question, const Choices& choices) {
  return fmt::format(
      "Answer the following multiple choice question. The last line of your response should be of "
      "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think "
      "step by step before answering.\n\n{}\n\nA) {}\nB) {}\nC) {}\nD) {}",
      question, choices[0], choices[1], choices[2], choices[3]);
}

Verdict compare_letter(std::optional<char> letter, std::string_view label) {
  if (!letter) return {};
  const std::string extracted(1, *letter);
  return {extracted, extracted == label ? Outcome::kRight : Outcome::kWrong};
}

void grade_letters(Task& task, std::optional<char> (*extract)(std::string_view)) {
  std::vector<std::string> labels;
  for (const Question& question : task.questions) labels.push_back(question.label);
  task.grade = [labels = std::move(labels), extract](size_t i, std::string_view answer) {
    return compare_letter(extract(answer), labels[i]);
  };
}

void finish(Task& task, const ChoiceOptions& options) {
  grade_letters(task, options.lenient ? lenient_answer_letter : answer_letter);
  task.settings = {{"scorer", options.lenient ? "lenient letter" : "letter"},
                   {"num_examples", options.num_examples}};
}

// Rows with their place in the file, which stays in the id when they are drawn.
std::vector<std::pair<size_t, Record>> numbered(std::vector<Record> rows) {
  std::vector<std::pair<size_t, Record>> all;
  for (size_t i = 0; i < rows.size(); ++i) all.emplace_back(i, std::move(rows[i]));
  return all;
}

std::string letter_label(const Record& row, std::string_view field) {
  std::string label = row.text(field);
  if (label.size() != 1 || label[0] < 'A' || label[0] > 'D') {
    throw_error("{}: \"{}\" must be A, B, C or D, got {}", row.where(), field, label);
  }
  return label;
}

}  // namespace

Task gpqa_task(std::vector<Record> rows, const ChoiceOptions& options) {
  Task task;
  task.name = "gpqa";
  bench::PythonRandom random(0);
  const auto chosen = sampled(numbered(std::move(rows)), options.num_examples, random);
  for (const auto& [idx, row] : chosen) {
    const Choices choices = {row.text("Correct Answer"), row.text("Incorrect Answer 1"),
                             row.text("Incorrect Answer 2"), row.text("Incorrect Answer 3")};
    const std::vector<size_t> order = random.sample(4, 4);
    Choices shown;
    char letter = 'A';
    for (size_t i = 0; i < 4; ++i) {
      shown[i] = choices[order[i]];
      if (order[i] == 0) letter = static_cast<char>('A' + i);
    }
    task.questions.push_back({.id = fmt::format("gpqa/{}", idx),
                              .prompt = letter_prompt(row.text("Question"), shown),
                              .label = std::string(1, letter),
                              .category = row.text_or_empty("High-level domain")});
  }
  finish(task, options);
  return task;
}

Task mmlu_task(std::vector<Record> rows, const ChoiceOptions& options) {
  Task task;
  task.name = "mmlu";
  bench::PythonRandom random(0);
  const auto chosen = sampled(numbered(std::move(rows)), options.num_examples, random);
  for (const auto& [idx, row] : chosen) {
    task.questions.push_back(
        {.id = fmt::format("mmlu/{}", idx),
         .prompt = letter_prompt(row.text("Question"),
                                 {row.text("A"), row.text("B"), row.text("C"), row.text("D")}),
         .label = letter_label(row, "Answer"),
         .category = std::string(mmlu_category(row.text("Subject")))});
  }
  finish(task, options);
  return task;
}

namespace {

std::string longbench_prompt(const Record& row) {
  auto field = [&](std::string_view name) { return std::string(trimmed(row.text(name))); };
  return fmt::format(
      "{}\n\nWhat is the correct answer to this question: {}\nChoices:\n(A) {}\n(B) {}\n(C) {}\n"
      "(D) {}\n\nThe correct answer is",
      field("context"), field("question"), field("choice_A"), field("choice_B"), field("choice_C"),
      field("choice_D"));
}

int64_t num_characters(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

bool wanted(const Record& row, const LongBenchOptions& options) {
  const int64_t length = num_characters(row.text("context"));
  if (length < options.min_context_length) return false;
  if (options.max_context_length > 0 && length > options.max_context_length) return false;
  const std::string listed = "," + options.categories + ",";
  return options.categories.empty() ||
         listed.find("," + row.text("domain") + ",") != std::string::npos;
}

}  // namespace

Task longbench_task(std::vector<Record> rows, const LongBenchOptions& options) {
  std::erase_if(rows, [&](const Record& row) { return !wanted(row, options); });
  if (rows.empty()) {
    throw_error("no row has a wanted category and a context length in the limits");
  }
  Task task;
  task.name = "longbench_v2";
  bench::PythonRandom random(0);
  for (const Record& row : sampled(std::move(rows), options.num_examples, random)) {
    task.questions.push_back({.id = "longbench_v2/" + row.text("_id"),
                              .prompt = longbench_prompt(row),
                              .label = letter_label(row, "answer"),
                              .category = row.text("domain") + ", " + row.text("difficulty")});
  }
  grade_letters(task, longbench_letter);
  task.settings = {{"scorer", "longbench letter"},
                   {"num_examples", options.num_examples},
                   {"min_context_length", options.min_context_length},
                   {"max_context_length", options.max_context_length},
                   {"categories", options.categories}};
  return task;
}

}  // namespace winnow::eval
