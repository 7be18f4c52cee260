// Another program's exit code and output.
#pragma once

#include <string>

namespace winnow::testing {

struct ProgramResult {
  int exit_code = 0;   // 128 + signal when it was killed
  std::string output;  // stdout and stderr together
};

// Runs a line of sh.
ProgramResult run_program(const std::string& command_line);

}  // namespace winnow::testing
