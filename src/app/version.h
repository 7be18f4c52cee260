#pragma once

#include <string>

namespace winnow::app {

// What --version prints: the project's version, the git revision, the CPU kernels of this build.
std::string version_text();

}  // namespace winnow::app
