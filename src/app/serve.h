// winnow serve: the HTTP server.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_serve(CLI::App& app);

}  // namespace winnow::app
