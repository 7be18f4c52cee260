// Two evaluations of the same questions, question by question: what an FP8 layout or a backend
// really costs. Pairing takes out that some questions are harder than others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "eval/sample_file.h"
#include "eval/statistics.h"

namespace winnow::eval {

struct Comparison {
  std::string task;
  std::string name_a;  // "model at server"
  std::string name_b;
  double score_a = 0;  // over the compared questions
  double score_b = 0;
  PairedDifference difference;  // of B - A, over the questions' means
  int64_t repeats_a = 1;
  int64_t repeats_b = 1;
  int64_t num_better_a = 0;  // questions on which A's mean is higher
  int64_t num_better_b = 0;
  double sign_test_p = 1;
  int64_t num_left_out = 0;                     // questions without an answer on a side
  std::vector<std::string> differing_settings;  // the ones that were not meant to differ, perhaps
};

// Two samples files of one eval. Throws Error when they are of different evals, have a question
// with different right answers or prompts, or share fewer than two questions.
Comparison compare_samples(const std::string& path_a, const std::string& path_b);

// What the figures show, in one sentence.
std::string conclusion(const Comparison& comparison);
std::string comparison_text(const Comparison& comparison);
json::Value to_json(const Comparison& comparison);

}  // namespace winnow::eval
