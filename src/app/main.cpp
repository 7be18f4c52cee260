// winnow: the subcommands, one file each.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/bench_offline.h"
#include "app/bench_one.h"
#include "app/bench_ops.h"
#include "app/bench_serving.h"
#include "app/eval.h"
#include "app/generate.h"
#include "app/inspect.h"
#include "app/score.h"
#include "app/serve.h"
#include "base/error.h"
#include "base/log.h"

namespace {

int run(std::vector<std::string> args) {
  CLI::App app("Winnow serves DeepSeek-Sparse-Attention models", "winnow");
  app.require_subcommand(1);
  winnow::app::add_serve(app);
  winnow::app::add_generate(app);
  winnow::app::add_inspect(app);
  winnow::app::add_score(app);
  CLI::App* bench = app.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  winnow::app::add_bench_offline(*bench);
  winnow::app::add_bench_one(*bench);
  winnow::app::add_bench_ops(*bench);
  winnow::app::add_bench_serving(*bench);
  winnow::app::add_eval(app);
  winnow::log::setup("info");
  try {
    args = winnow::app::with_full_flags(app, std::move(args));
    std::reverse(args.begin(), args.end());  // as CLI11 wants a vector
    app.parse(std::move(args));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const winnow::Error& error) {
    std::fprintf(stderr, "winnow: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "winnow: internal error: %s\n", error.what());
  }
  return 1;
}
