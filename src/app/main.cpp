// winnow: the subcommands, one file each.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

#include "app/bench_offline.h"
#include "app/inspect.h"
#include "app/score.h"
#include "base/error.h"
#include "base/log.h"

int main(int argc, char** argv) {
  CLI::App app("Winnow serves DeepSeek-Sparse-Attention models", "winnow");
  app.require_subcommand(1);
  winnow::app::add_inspect(app);
  winnow::app::add_score(app);
  CLI::App* bench = app.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  winnow::app::add_bench_offline(*bench);
  try {
    winnow::log::setup("info");
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const winnow::Error& error) {
    std::fprintf(stderr, "winnow: %s\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "winnow: internal error: %s\n", error.what());
    return 1;
  }
  return 0;
}
