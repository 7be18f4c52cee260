// winnow score: logits, hidden states and selected tokens of given ids, for comparing engines.
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::app {

void add_score(CLI::App& app);

}  // namespace winnow::app
