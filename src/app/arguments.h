// The command line before CLI11 sees it: unique prefixes of flags are spelled out, as argparse
// does for users of SGLang (--tp for --tp-size, --random-input for --random-input-len).
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace winnow::app {

// args: without the program's name. Follows subcommands. Throws Error for a flag that fits
// nothing, with the nearest names, or more than one.
std::vector<std::string> with_full_flags(const CLI::App& app, std::vector<std::string> args);

}  // namespace winnow::app
