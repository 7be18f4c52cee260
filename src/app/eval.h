// winnow eval: how well a served model answers, measured over HTTP.
#pragma once

#include <string>

#include "app/command.h"
#include "app/eval_options.h"
#include "app/eval_report.h"

namespace winnow::app {

// winnow eval {gsm8k, gpqa, ...} and winnow eval compare.
Command eval_command();

// Asks everything and writes the reports; its figures. An interrupt ends it early. Throws Error,
// also when requests failed or the run was interrupted: then after writing what there is.
EvalReport run_eval(const EvalOptions& options);

}  // namespace winnow::app
