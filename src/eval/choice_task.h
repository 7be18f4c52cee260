// Multiple-choice exams: GPQA, MMLU and LongBench v2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eval/records.h"
#include "eval/task.h"

namespace winnow::eval {

struct ChoiceOptions {
  int64_t num_examples = 0;  // 0: all, in file order; else drawn, which also reorders
  bool lenient = false;      // lenient_answer_letter() instead of the reference's pattern
};

// Columns Question, Correct Answer, Incorrect Answer 1 to 3. Random(0) draws the rows, then one
// order of the choices for each. Throws Error.
Task gpqa_task(std::vector<Record> rows, const ChoiceOptions& options);

// Columns Question, A, B, C, D, Answer, Subject; categories stem, humanities, social_sciences and
// other. Throws Error.
Task mmlu_task(std::vector<Record> rows, const ChoiceOptions& options);

struct LongBenchOptions {
  int64_t num_examples = 0;
  int64_t min_context_length = 0;  // characters
  int64_t max_context_length = 0;  // 0: any
  std::string categories = {};     // of "domain", comma-separated; "": all
};

// Fields _id, domain, difficulty, question, choice_A to choice_D, answer, context. Throws Error.
Task longbench_task(std::vector<Record> rows, const LongBenchOptions& options);

// "stem", ... for one of MMLU's 57 subjects; "other" for any other name.
std::string_view mmlu_category(std::string_view subject);

}  // namespace winnow::eval
