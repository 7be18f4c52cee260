#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "base/error.h"

namespace winnow::log {
namespace {

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::off;
}

}  // namespace

void write(Level level, fmt::string_view format, fmt::format_args args) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  const auto value = level_of(level);
  if (logger.should_log(value)) logger.log(value, fmt::vformat(format, args));
}

void setup(const std::string& level) {
  spdlog::level::level_enum value{};
  if (level == "debug") {
    value = spdlog::level::debug;
  } else if (level == "info") {
    value = spdlog::level::info;
  } else if (level == "warning") {
    value = spdlog::level::warn;
  } else if (level == "error") {
    value = spdlog::level::err;
  } else {
    throw_error("--log-level {}: expected debug, info, warning or error", level);
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("winnow", sink);
  logger->set_level(value);
  logger->set_pattern("[%Y-%m-%d %H:%M:%S.%e] %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace winnow::log
