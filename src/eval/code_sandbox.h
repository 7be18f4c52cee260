// Runs a Python program that a model wrote, in a process of its own: time, memory, file sizes and
// processes are limited, the environment is empty, the folder is thrown away, and there is no
// network where the system lets us take it away. Root becomes nobody. This holds off accidents; it
// is no wall against an attacker, so use a container for models you do not trust.
#pragma once

#include <cstdint>
#include <string>

namespace winnow::eval {

struct SandboxLimits {
  double timeout_s = 3;
  int64_t memory_bytes = int64_t{1} << 30;
  int64_t file_bytes = int64_t{1} << 20;
};

enum class ProgramEnd {
  kPassed,    // exit code 0
  kFailed,    // any other end
  kTimedOut,  // killed
};

// Any thread. Throws Error when the program cannot be started at all, e.g. without python3.
ProgramEnd run_python(const std::string& program, const SandboxLimits& limits = {});

// Whether run_python can take the network away on this system.
bool sandbox_cuts_network();

}  // namespace winnow::eval
