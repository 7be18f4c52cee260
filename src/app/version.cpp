#include "app/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "backends/backends.h"

namespace winnow::app {

std::string version_text() {
  // Read when CMake configures, so that a commit does not rebuild everything.
  constexpr std::string_view kRevision = WINNOW_REVISION;
  std::string isa;
  backends::cpu_kernels({}, isa);
  return fmt::format("winnow {}\ngit revision {}\nCPU kernels {}; this machine takes {}\n",
                     WINNOW_VERSION,
                     kRevision.empty() ? "unknown" : fmt::format("{} when configured", kRevision),
                     fmt::join(backends::cpu_kernel_sets(), ", "), isa);
}

}  // namespace winnow::app
