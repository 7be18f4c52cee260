// What an evaluation asks and how it grades: data, with no server in sight.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::eval {

struct Question {
  std::string id;        // "gsm8k/20": names the same question on every run
  std::string prompt;    // behind the task's common prefix
  std::string label;     // the right answer, as shown
  std::string category;  // "" where the set has none
};

enum class Outcome {
  kRight,
  kWrong,
  kInvalid,  // nothing that could be an answer
};

struct Verdict {
  std::string extracted;  // "" where nothing was found
  Outcome outcome = Outcome::kInvalid;
};

struct Task {
  std::string name;           // "gpqa"
  std::string common_prefix;  // the shots: in front of every prompt
  std::vector<Question> questions;
  // index into questions, the answer's text without its reasoning. Any thread.
  std::function<Verdict(size_t index, std::string_view answer)> grade;
  // What the score depends on besides the questions: "num_shots", "scorer", ...
  json::Object settings;
  std::vector<std::string> notes;  // what a reader of the score must know
};

// Equal for equal prompts and right answers, whichever file they came from: 16 hexadecimal digits.
std::string questions_fingerprint(const Task& task);

// Samples are told apart by their question's id. Throws Error when two questions have one.
void check_ids_differ(const Task& task);

}  // namespace winnow::eval
