#include "eval/task.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "base/error.h"

namespace winnow::eval {

std::string questions_fingerprint(const Task& task) {
  uint64_t hash = 14695981039346656037U;  // FNV-1a
  auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    hash = (hash ^ 0xFF) * 1099511628211U;
  };
  mix(task.common_prefix);
  for (const Question& question : task.questions) {
    mix(question.id);
    mix(question.prompt);
    mix(question.label);
  }
  return fmt::format("{:016x}", hash);
}

void check_ids_differ(const Task& task) {
  std::set<std::string_view> ids;
  for (const Question& question : task.questions) {
    if (!ids.insert(question.id).second) {
      throw_error("two questions of the data set are called {}", question.id);
    }
  }
}

}  // namespace winnow::eval
