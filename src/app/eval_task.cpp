#include "app/eval_task.h"

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "eval/choice_task.h"
#include "eval/code_sandbox.h"
#include "eval/gsm8k_task.h"
#include "eval/humaneval_task.h"
#include "eval/math_task.h"
#include "eval/needle_task.h"
#include "eval/records.h"
#include "text/tokenizer.h"

namespace winnow::app {
namespace {

std::vector<eval::Record> rows_of(const EvalOptions& options) {
  if (options.eval_name == "gsm8k" && options.data_path.empty()) {
    return eval::json_records("gsm8k test set", eval::gsm8k_test_jsonl());
  }
  if (!std::filesystem::exists(options.data_path)) {
    throw_error(
        "{}: is not there; --data-path names the data set, and docs/evaluations.md says where {} "
        "comes from",
        options.data_path, options.eval_name);
  }
  std::vector<eval::Record> rows = eval::read_records(options.data_path);
  if (rows.empty()) throw_error("{}: has no rows", options.data_path);
  return rows;
}

eval::Task humaneval(const EvalOptions& options) {
  if (!options.allow_code_execution) {
    throw_error(
        "humaneval runs the programs that the model writes on this machine; "
        "--allow-code-execution says that it may");
  }
  eval::Task task = eval::humaneval_task(rows_of(options), {.num_examples = options.num_examples,
                                                            .run = [](const std::string& program) {
                                                              return eval::run_python(program);
                                                            }});
  if (!eval::sandbox_cuts_network()) {
    task.notes.emplace_back(
        "The programs could reach the network: the system does not let it be "
        "taken away here.");
  }
  return task;
}

eval::Task needle(const EvalOptions& options) {
  eval::NeedleOptions needle{.lengths = options.lengths,
                             .depths = options.depths,
                             .per_cell = options.per_cell,
                             .num_distractors = options.num_distractors,
                             .seed = static_cast<uint64_t>(options.text_seed),
                             .count = {}};
  if (!options.tokenizer_path.empty()) {
    const std::shared_ptr<text::Tokenizer> tokenizer = text::load_tokenizer(options.tokenizer_path);
    needle.count = [tokenizer](std::string_view text) {
      return static_cast<int64_t>(tokenizer->encode(text, text::ControlTokens::kPlain).size());
    };
  }
  return eval::needle_task(needle);
}

}  // namespace

eval::Task make_eval_task(const EvalOptions& o) {
  if (o.eval_name == "needle") return needle(o);
  if (o.eval_name == "humaneval") return humaneval(o);
  std::vector<eval::Record> rows = rows_of(o);
  if (o.eval_name == "gsm8k") {
    return eval::gsm8k_task(
        rows, {.num_shots = o.num_shots, .num_questions = o.num_examples, .parity = o.parity});
  }
  const eval::ChoiceOptions choice{.num_examples = o.num_examples, .lenient = o.lenient};
  if (o.eval_name == "gpqa") return eval::gpqa_task(std::move(rows), choice);
  if (o.eval_name == "mmlu") return eval::mmlu_task(std::move(rows), choice);
  if (o.eval_name == "math") return eval::math_task(std::move(rows), o.num_examples);
  if (o.eval_name == "aime") {
    return eval::aime_task(std::move(rows), {.num_examples = o.num_examples, .parity = o.parity});
  }
  WINNOW_CHECK(o.eval_name == "longbench_v2", "{}", o.eval_name);
  return eval::longbench_task(std::move(rows), {.num_examples = o.num_examples,
                                                .min_context_length = o.min_context_length,
                                                .max_context_length = o.max_context_length,
                                                .categories = o.categories});
}

}  // namespace winnow::app
