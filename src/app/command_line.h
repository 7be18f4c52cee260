// From the words of the command line to the command that they name.
#pragma once

#include <string>
#include <vector>

#include "app/command.h"

namespace winnow::app {

// args: without the program's name. Prints help where asked to, else runs the command; the exit
// code. Throws what the command throws, and Error for flags that do not exist.
int run_command_line(const Command& program, const std::vector<std::string>& args);

}  // namespace winnow::app
