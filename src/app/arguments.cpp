#include "app/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "app/option_table.h"
#include "base/error.h"

namespace winnow::app {
namespace {

std::vector<std::string> flags_of(const Command& command) {
  std::vector<std::string> flags = {"--help"};
  if (command.markdown) flags.emplace_back(kMarkdownFlag);
  if (command.version) flags.emplace_back(kVersionFlag);
  if (!command.options) return flags;
  for (const OptionRow& row : command.options->rows()) {
    if (!row.positional()) flags.insert(flags.end(), row.flags.begin(), row.flags.end());
  }
  return flags;
}

const Command& subcommand_named(const Command& command, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& sub : command.subcommands) {
    if (sub.name == name) return sub;
    names.push_back(sub.name);
  }
  throw_error("there is no {} {}; one of {} must follow {}", command.name, name,
              fmt::join(names, ", "), command.name);
}

// Levenshtein distance.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

[[noreturn]] void unknown_flag(const std::string& flag, std::vector<std::string> flags) {
  constexpr size_t kMaxSuggestions = 3;
  std::stable_sort(flags.begin(), flags.end(), [&](const std::string& a, const std::string& b) {
    return distance(flag, a) < distance(flag, b);
  });
  const size_t worth_naming = flag.size() / 2 + 1;
  std::vector<std::string> near;
  for (const std::string& f : flags) {
    if (near.size() < kMaxSuggestions && distance(flag, f) < worth_naming) near.push_back(f);
  }
  if (near.empty()) throw_error("there is no option {}; see --help", flag);
  throw_error("there is no option {}; did you mean {}?", flag, fmt::join(near, ", "));
}

std::string full_flag(const std::string& flag, const std::vector<std::string>& flags) {
  if (std::find(flags.begin(), flags.end(), flag) != flags.end()) return flag;
  std::vector<std::string> fitting;
  for (const std::string& f : flags) {
    if (f.starts_with(flag)) fitting.push_back(f);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) unknown_flag(flag, flags);
  throw_error("{} could be any of {}", flag, fmt::join(fitting, ", "));
}

// next: the word behind the flag; null at the end.
void note_flag(const Command& command,
               const std::string& flag,
               bool has_value,
               const std::string* next) {
  if (!command.options) return;
  for (OptionRow& row : command.options->rows()) {
    if (std::find(row.flags.begin(), row.flags.end(), flag) == row.flags.end()) continue;
    row.typed = flag;
    if (row.value.empty() || has_value) return;
    if (next == nullptr || next->starts_with("--")) {
      throw_error("{}: a value ({}) must follow", flag, row.value);
    }
    return;
  }
}

}  // namespace

std::vector<std::string> with_full_flags(const Command& program, std::vector<std::string> args) {
  const Command* current = &program;
  std::vector<std::string> flags = flags_of(*current);
  for (size_t i = 0; i < args.size(); ++i) {
    std::string& arg = args[i];
    if (arg == "--") break;
    if (!arg.starts_with("--")) {
      if (current->subcommands.empty() || arg == "-h") continue;
      current = &subcommand_named(*current, arg);
      flags = flags_of(*current);
      continue;
    }
    const size_t eq = std::min(arg.find('='), arg.size());
    const std::string flag = full_flag(arg.substr(0, eq), flags);
    note_flag(*current, flag, eq < arg.size(), i + 1 < args.size() ? &args[i + 1] : nullptr);
    arg.replace(0, eq, flag);
  }
  return args;
}

}  // namespace winnow::app
