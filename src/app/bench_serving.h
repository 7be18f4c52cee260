// winnow bench serving: a load on any server, and the report on it.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_bench_serving(CLI::App& bench);

}  // namespace winnow::app
