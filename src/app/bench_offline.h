// winnow bench offline: the engine's speed without a server, against the machine's own limits.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_bench_offline(CLI::App& bench);

}  // namespace winnow::app
