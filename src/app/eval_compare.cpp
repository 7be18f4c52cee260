#include "app/eval_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/eval.h"
#include "app/server_url.h"
#include "base/error.h"
#include "base/log.h"
#include "bench/http_client.h"
#include "eval/compare.h"
#include "eval/model_name.h"
#include "eval/sample_file.h"

namespace winnow::app {
namespace {

bool is_server(const std::string& side) { return side.find("://") != std::string::npos; }

struct CompareState {
  std::string a;
  std::string b;
  EvalOptions options;
  std::string eval_name;
  OptionTable table;

  CompareState() : table(eval_option_table(options, "")) {
    table.positional("A", a, "URL of a server, or a samples file", Presence::kRequired);
    table.positional("B", b, "The same; the difference is B - A", Presence::kRequired);
    table.section("Comparison");
    table.text("--eval-name", eval_name, "NAME", "What to ask the servers.");
  }
};

EvalOptions options_of(const std::string& side, const char* letter, EvalOptions options) {
  options.base_url = side;
  options.json = false;
  options.print = false;
  if (!options.output.empty()) {
    const std::string ending = options.output.ends_with(".jsonl") ? ".jsonl" : "";
    options.output.resize(options.output.size() - ending.size());
    options.output += fmt::format("_{}{}", letter, ending);
  }
  return options;
}

// What would be found out only when the other side has been asked everything.
void check_side(const std::string& side, const EvalOptions& options) {
  if (!is_server(side)) {
    eval::read_sample_header(side);
    return;
  }
  const bench::Url url = server_url(options.base_url, options.host, options.port);
  const eval::RequestSettings request = request_settings(options);
  if (request.model.empty()) {
    eval::ask_model_name(url, bench::authorization_from_environment(), request.api);
  }
  if (std::filesystem::exists(options.output)) {
    throw_error("{}: is there already", options.output);
  }
}

// The samples file of one side: asks the server first where the side is one.
std::string samples_of(const std::string& side, const EvalOptions& options) {
  if (!is_server(side)) return side;
  std::string path = run_eval(options).samples_path;
  log::info("{}: its samples are in {}", side, path);
  return path;
}

void run_compare(CompareState& state) {
  state.table.apply();
  if (is_server(state.a) || is_server(state.b)) {
    const auto& names = eval_names();
    if (std::find(names.begin(), names.end(), state.eval_name) == names.end()) {
      throw_error("--eval-name {}: servers are asked one of {}", state.eval_name,
                  fmt::join(names, ", "));
    }
    state.options = default_eval_options(state.eval_name);
    state.table.apply();  // again: the defaults were not known before
  }
  if (!state.options.resume.empty()) {
    throw_error("--resume {}: finish that run with winnow eval {}, then compare its file",
                state.options.resume, state.eval_name);
  }
  const EvalOptions options_a = options_of(state.a, "a", state.options);
  const EvalOptions options_b = options_of(state.b, "b", state.options);
  check_side(state.a, options_a);
  check_side(state.b, options_b);
  const std::string path_a = samples_of(state.a, options_a);
  const std::string path_b = samples_of(state.b, options_b);
  const eval::Comparison comparison = eval::compare_samples(path_a, path_b);
  const std::string text = state.options.json ? json::dump(eval::to_json(comparison)) + "\n"
                                              : eval::comparison_text(comparison);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

Command eval_compare_command() {
  auto state = std::make_shared<CompareState>();
  return make_command("compare", "The paired difference between two servers or samples files",
                      state, [state] { run_compare(*state); });
}

}  // namespace winnow::app
