// From options to the questions of an evaluation.
#pragma once

#include "app/eval_options.h"
#include "eval/task.h"

namespace winnow::app {

// Reads the data set. Throws Error naming the file or the option.
eval::Task make_eval_task(const EvalOptions& options);

}  // namespace winnow::app
