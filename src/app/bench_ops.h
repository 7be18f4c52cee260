// winnow bench ops: the rates of the GPU kernels, case by case.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_bench_ops(CLI::App& bench);

}  // namespace winnow::app
