// One answer to one question, as the samples file keeps it.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "eval/task.h"

namespace winnow::eval {

struct Sample {
  std::string id;
  int64_t repeat = 0;
  std::string category;
  std::string prompt;  // without the common prefix; a very long one without its middle
  std::string label;
  std::string response;
  std::string reasoning;
  std::string finish_reason;  // "stop", "length", ...; "" where there was no answer
  int64_t prompt_tokens = 0;  // 0 where the server does not say
  int64_t completion_tokens = 0;
  double seconds = 0;    // of the attempt that was answered
  int64_t attempts = 1;  // requests sent for it
  std::string error;     // why there is no answer
  bool refused = false;  // the server will not take this request (400, 413, 422): final, wrong
  Verdict verdict;

  bool failed() const { return !error.empty() && !refused; }  // to be asked again
  bool truncated() const { return finish_reason == "length"; }
  bool right() const { return error.empty() && verdict.outcome == Outcome::kRight; }
  double score() const { return right() ? 1 : 0; }
  // "right", "wrong", "invalid", "refused" or "failed".
  const char* outcome_name() const;
};

json::Value to_json(const Sample& sample);
// kInvalidArgument naming the field.
Result<Sample> sample_from_json(const json::Value& value);

}  // namespace winnow::eval
