// winnow bench one: one request to a server, and its speed.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_bench_one(CLI::App& bench);

}  // namespace winnow::app
