// One word of the command line: its options and what it does, or the words that may follow it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace winnow::app {

class OptionTable;

struct Command {
  std::string name;
  std::string help;
  std::vector<Command> subcommands;  // one of them must follow
  // Of a command without subcommands; run() is called once the table knows what was given.
  std::shared_ptr<OptionTable> options = nullptr;
  std::function<void()> run = nullptr;
  // What --help-markdown and --version print, where there is one.
  std::function<std::string()> markdown = nullptr;
  std::function<std::string()> version = nullptr;
};

// A command whose state {options; table} lives as long as it does.
template <typename State>
Command make_command(std::string name,
                     std::string help,
                     const std::shared_ptr<State>& state,
                     std::function<void()> run) {
  return {.name = std::move(name),
          .help = std::move(help),
          .subcommands = {},
          .options = std::shared_ptr<OptionTable>(state, &state->table),
          .run = std::move(run)};
}

}  // namespace winnow::app
