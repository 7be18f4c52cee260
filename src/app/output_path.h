// Files that a command writes at its end.
#pragma once

#include <string>

namespace winnow::app {

// Before the run, so that none is measured for nothing. "" is no file. Throws Error naming the
// flag.
void check_writable(const char* flag, const std::string& path);

}  // namespace winnow::app
