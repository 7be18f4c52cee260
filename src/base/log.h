// Logging to stderr: winnow::log::info("loaded {} tensors", n). Level from --log-level.
// What writes the lines stays behind this header: its templates cost seconds in every file.
#pragma once

#include <fmt/core.h>

#include <string>

namespace winnow::log {

enum class Level { kDebug, kInfo, kWarning, kError, kCritical };

// Installs the stderr sink and the line format. level: debug, info, warning, error.
// Throws Error on any other word.
void setup(const std::string& level);

void write(Level level, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, format, fmt::make_format_args(args...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, format, fmt::make_format_args(args...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, format, fmt::make_format_args(args...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, format, fmt::make_format_args(args...));
}
template <typename... Args>
void critical(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kCritical, format, fmt::make_format_args(args...));
}

}  // namespace winnow::log
