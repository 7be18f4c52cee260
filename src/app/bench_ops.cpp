#include "app/bench_ops.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/option_table.h"
#include "base/error.h"

namespace winnow::app {

namespace {

struct OpsOptions {
  std::vector<std::string> cases;
  std::vector<std::string> only;
  std::string json;
  std::string rivals;
};

// The bench is the kernels' own check program: it can also be built and carried alone.
constexpr const char* kProgram = "winnow_gpu_check";

void run_ops(const OpsOptions& options) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / kProgram;
  if (!std::filesystem::exists(program)) {
    throw_error(
        "bench ops runs {}, which is not there; build it with: cmake --preset cuda && "
        "cmake --build --preset cuda --target {}",
        program.string(), kProgram);
  }
  std::vector<std::string> arguments = {program.string(), "--bench-only"};
  for (const std::string& text : options.only) {
    arguments.insert(arguments.end(), {"--only", text});
  }
  if (!options.json.empty()) arguments.insert(arguments.end(), {"--json", options.json});
  if (!options.rivals.empty()) arguments.insert(arguments.end(), {"--rivals", options.rivals});
  arguments.insert(arguments.end(), options.cases.begin(), options.cases.end());
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  throw_error("cannot run {}: {}", program.string(), std::strerror(errno));
}

}  // namespace

Command bench_ops_command() {
  struct State {
    OpsOptions options;
    OptionTable table;
  };
  auto state = std::make_shared<State>();
  OptionTable& t = state->table;
  t.positionals("cases", state->options.cases,
                "sparse_mla, cache_writes, topk, index_logits, select_tokens (a prefix is "
                "enough); default: all");
  t.section("Ops");
  t.texts("--only", state->options.only, "TEXT",
          "Time only the cases that have TEXT in their name, e.g. \"rows 16 heads 64\".");
  t.text("--json", state->options.json, "FILE", "Write one JSON object a line to this file.");
  t.text("--rivals", state->options.rivals, "SCRIPT",
         "Also time other implementations, by this script (bench/rivals.py).");
  return make_command(
      "ops", "Rates of the GPU kernels: time, TFLOP/s, GB/s and part of the floor's rate, by case",
      state, [state] {
        state->table.apply();
        run_ops(state->options);
      });
}

}  // namespace winnow::app
