// winnow inspect: what a checkpoint folder holds, what it costs and what would serve it.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_inspect(CLI::App& app);

}  // namespace winnow::app
