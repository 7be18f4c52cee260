#include "eval/humaneval_task.h"

#include <fmt/format.h>

#include "eval/prompt_sampling.h"
#include "eval/text_folding.h"
#include "eval/thinking.h"

namespace winnow::eval {
namespace {

struct Program {
  std::string prompt;
  std::string entry_point;
  std::string test;
};

// An answer may hold the whole function or its body alone.
std::string assemble(const Program& program, const std::string& code) {
  const bool whole = code.find("def " + program.entry_point) != std::string::npos;
  return fmt::format("{}{}{}\n\n{}\n\ncheck({})\n", program.prompt, whole ? "\n    pass\n\n" : "",
                     code, program.test, program.entry_point);
}

}  // namespace

std::string first_code_block(std::string_view answer) {
  const std::string_view text = without_thinking(answer);
  size_t begin = text.find("```python");
  if (begin == std::string_view::npos) begin = text.find("```");
  if (begin == std::string_view::npos) return {};
  begin = text.find('\n', begin);
  if (begin == std::string_view::npos) return {};
  const size_t end = text.find("```", begin);
  return std::string(text.substr(begin + 1, end == text.npos ? end : end - begin - 1));
}

Task humaneval_task(std::vector<Record> rows, const HumanevalOptions& options) {
  Task task;
  task.name = "humaneval";
  bench::PythonRandom random(0);
  std::vector<Program> programs;
  for (const Record& row : sampled(std::move(rows), options.num_examples, random)) {
    programs.push_back({row.text("prompt"), row.text("entry_point"), row.text("test")});
    task.questions.push_back(
        {.id = "humaneval/" + row.text("task_id"),
         .prompt = "Write the Python function that is begun here. Answer with one ```python block "
                   "that holds the whole function and nothing else.\n\n```python\n" +
                   programs.back().prompt + "\n```",
         .label = "passes " + programs.back().entry_point + "'s tests",
         .category = ""});
  }
  task.grade = [programs = std::move(programs), run = options.run](
                   size_t i, std::string_view answer) -> Verdict {
    const std::string code = first_code_block(answer);
    if (trimmed(code).empty()) return {};
    switch (run(assemble(programs[i], code))) {
      case ProgramEnd::kPassed:
        return {"passed", Outcome::kRight};
      case ProgramEnd::kTimedOut:
        return {"timed out", Outcome::kWrong};
      case ProgramEnd::kFailed:
        break;
    }
    return {"failed", Outcome::kWrong};
  };
  task.settings = {{"scorer", "tests"}, {"num_examples", options.num_examples}};
  return task;
}

double pass_at(int64_t n, int64_t c, int64_t k) {
  double none = 1;
  for (int64_t i = 0; i < k; ++i) {
    none *= static_cast<double>(n - c - i) / static_cast<double>(n - i);
    if (n - c - i <= 0) return 1;
  }
  return 1 - none;
}

}  // namespace winnow::eval
