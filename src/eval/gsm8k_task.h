// GSM8K: grade-school word problems after worked examples, as a plain text to go on with.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/records.h"
#include "eval/task.h"

namespace winnow::eval {

struct Gsm8kOptions {
  int64_t num_shots = 5;
  int64_t num_questions = 200;  // 0: all
  // The old script's way: the questions begin at row 0, so with k shots the first k have their own
  // answers in the prompt, and gsm8k_script_number() reads the answers.
  bool parity = false;
};

// rows: {"question", "answer"}, the answer ending in "#### N". Throws Error.
Task gsm8k_task(const std::vector<Record>& rows, const Gsm8kOptions& options);

// The 1,319 test questions that come with Winnow (data/gsm8k, MIT licence beside them).
std::string_view gsm8k_test_jsonl();

}  // namespace winnow::eval
