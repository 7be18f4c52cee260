// HumanEval: functions written from their signature and description, judged by running tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/code_sandbox.h"
#include "eval/records.h"
#include "eval/task.h"

namespace winnow::eval {

struct HumanevalOptions {
  int64_t num_examples = 0;  // 0: all, else drawn by Random(0)
  std::function<ProgramEnd(const std::string& program)> run = {};
};

// Fields task_id, prompt, entry_point, test. Repeats are the samples of pass@k. Throws Error.
Task humaneval_task(std::vector<Record> rows, const HumanevalOptions& options);

// The first ```python block, else the first block of any kind; nothing where there is none.
std::string first_code_block(std::string_view answer);

// pass@k of one task: the chance that k of its n samples, drawn without replacement, hold one of
// the c right ones.
double pass_at(int64_t n, int64_t c, int64_t k);

}  // namespace winnow::eval
