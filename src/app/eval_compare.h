// winnow eval compare A B: the same questions to two servers, or two samples files.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_eval_compare(CLI::App& eval);

}  // namespace winnow::app
