// The only file that sees CLI11, whose headers take longer to compile than all of a command.
#include "app/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "app/arguments.h"
#include "app/option_table.h"

namespace winnow::app {
namespace {

void add_row(CLI::App& app, OptionRow& row) {
  const std::string names = fmt::format("{}", fmt::join(row.flags, ","));
  CLI::Option* option = nullptr;
  if (row.value.empty()) {
    option = app.add_flag_callback(
        names, [&row] { row.given = {"true"}; }, row.help);
  } else {
    option = app.add_option_function<std::vector<std::string>>(
        names, [&row](const std::vector<std::string>& texts) { row.given = texts; }, row.help);
    option->type_name(row.positional() ? "" : row.value)->default_str(row.default_text);
    if (!row.positional() || !row.clear) {
      option->expected(1)->allow_extra_args(false);  // one value a flag, whatever follows it
    }
    option->required(row.required);
    option->multi_option_policy(row.clear ? CLI::MultiOptionPolicy::TakeAll
                                          : CLI::MultiOptionPolicy::TakeLast);
  }
  if (!row.positional()) option->group(row.section);
}

void add_printer(CLI::App& app,
                 const char* flag,
                 const std::function<std::string()>& text,
                 const char* help) {
  app.add_flag_callback(
      flag,
      [&text] {
        std::fputs(text().c_str(), stdout);
        throw CLI::Success();
      },
      help);
}

void fill(CLI::App& app, const Command& command) {
  for (const Command& sub : command.subcommands) fill(*app.add_subcommand(sub.name, sub.help), sub);
  if (!command.subcommands.empty()) app.require_subcommand(1);
  if (command.options) {
    for (OptionRow& row : command.options->rows()) add_row(app, row);
  }
  if (command.markdown) {
    add_printer(app, kMarkdownFlag, command.markdown, "Print these options as Markdown and exit");
  }
  if (command.version) {
    add_printer(app, kVersionFlag, command.version, "Print what this program is and exit");
  }
}

const Command& chosen(const CLI::App& app, const Command& command) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) return command;
  const auto sub = std::find_if(
      command.subcommands.begin(), command.subcommands.end(),
      [&](const Command& candidate) { return candidate.name == parsed.front()->get_name(); });
  return chosen(*parsed.front(), *sub);
}

}  // namespace

int run_command_line(const Command& program, const std::vector<std::string>& args) {
  CLI::App app(program.help, program.name);
  fill(app, program);
  try {
    std::vector<std::string> words = with_full_flags(program, args);
    std::reverse(words.begin(), words.end());  // as CLI11 wants a vector
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  chosen(app, program).run();
  return 0;
}

}  // namespace winnow::app
