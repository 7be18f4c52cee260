// Logging to stderr: winnow::log::info("loaded {} tensors", n). Level from --log-level.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace winnow::log {

using spdlog::critical;
using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// Installs the stderr sink and the line format. level: debug, info, warning, error.
// Throws Error on any other word.
void setup(const std::string& level);

}  // namespace winnow::log
