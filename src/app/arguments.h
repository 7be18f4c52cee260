// The command line before its parser sees it: unique prefixes of flags are spelled out, as argparse
// does for users of SGLang (--tp for --tp-size, --random-input for --random-input-len).
#pragma once

#include <string>
#include <vector>

#include "app/command.h"

namespace winnow::app {

constexpr const char* kMarkdownFlag = "--help-markdown";
constexpr const char* kVersionFlag = "--version";

// args: without the program's name. Follows subcommands; each row learns by which of its flags it
// was given. Throws Error for a flag that fits nothing, with the nearest names, or more than one,
// and for one whose value is missing.
std::vector<std::string> with_full_flags(const Command& program, std::vector<std::string> args);

}  // namespace winnow::app
