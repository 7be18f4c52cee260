// Mathematics with free answers: MATH and AIME.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/records.h"
#include "eval/task.h"

namespace winnow::eval {

// Columns Question and Answer (or problem and answer); graded by same_math(). num_examples: 0 all,
// else drawn by Random(0). Throws Error.
Task math_task(std::vector<Record> rows, int64_t num_examples);

struct AimeOptions {
  int64_t num_examples = 0;
  bool parity = false;  // the first "Answer:" line, read as a float, and nothing else
};

// Fields question (or problem) and answer, a whole number from 0 to 999. Throws Error.
Task aime_task(std::vector<Record> rows, const AimeOptions& options);

}  // namespace winnow::eval
