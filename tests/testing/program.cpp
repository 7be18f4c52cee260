#include "testing/program.h"

#include <sys/wait.h>

#include <cstdio>

#include "base/error.h"

namespace winnow::testing {

ProgramResult run_program(const std::string& command_line) {
  std::FILE* pipe = ::popen(("{ " + command_line + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) throw_error("cannot run {}", command_line);
  ProgramResult result;
  char buffer[4096];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    result.output.append(buffer, count);
  }
  const int status = ::pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace winnow::testing
