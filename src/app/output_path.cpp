#include "app/output_path.h"

#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace winnow::app {

void check_writable(const char* flag, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool there = std::filesystem::exists(path);
  const std::string target = there ? path : folder.empty() ? "." : folder.string();
  if (::access(target.c_str(), there ? W_OK : W_OK | X_OK) == 0 &&
      std::filesystem::is_directory(target) != there) {
    return;
  }
  throw_error("{} {}: cannot be written", flag, path);
}

}  // namespace winnow::app
