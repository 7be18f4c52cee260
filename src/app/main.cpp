// winnow: the subcommands, one file each.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "app/bench_offline.h"
#include "app/bench_one.h"
#include "app/bench_ops.h"
#include "app/bench_serving.h"
#include "app/command_line.h"
#include "app/eval.h"
#include "app/generate.h"
#include "app/inspect.h"
#include "app/score.h"
#include "app/serve.h"
#include "app/standard_streams.h"
#include "app/version.h"
#include "base/error.h"
#include "base/log.h"

namespace {

winnow::app::Command program() {
  using namespace winnow::app;
  const Command bench = {.name = "bench",
                         .help = "Measure speed",
                         .subcommands = {bench_offline_command(), bench_one_command(),
                                         bench_ops_command(), bench_serving_command()}};
  return {.name = "winnow",
          .help = "Winnow serves DeepSeek-Sparse-Attention models",
          .subcommands = {serve_command(), generate_command(), inspect_command(), score_command(),
                          bench, eval_command()},
          .version = version_text};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    winnow::app::occupy_standard_streams();
    winnow::log::setup("info");
    const int code = winnow::app::run_command_line(program(), {argv + 1, argv + argc});
    winnow::app::flush_out();
    return code;
  } catch (const winnow::app::OutputClosed&) {
    return 1;
  } catch (const winnow::Error& error) {
    std::fprintf(stderr, "winnow: %s\n", error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "winnow: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "winnow: internal error: %s\n", error.what());
  }
  return 1;
}
