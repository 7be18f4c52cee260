// winnow generate: one prompt or chat from the shell, streamed to stdout.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_generate(CLI::App& app);

}  // namespace winnow::app
