// What an evaluation found, in numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "eval/sample.h"

namespace winnow::eval {

struct CategoryScore {
  std::string name;
  int64_t num_samples = 0;
  double score = 0;
};

struct Summary {
  int64_t num_questions = 0;  // answered at least once
  int64_t num_repeats = 0;
  // Every sample is one of these; truncated ones are counted in theirs as well.
  int64_t num_right = 0;
  int64_t num_wrong = 0;
  int64_t num_invalid = 0;
  int64_t num_refused = 0;
  int64_t num_failed = 0;  // in no score
  int64_t num_truncated = 0;
  int64_t num_retried = 0;            // needed more than one request
  double score = 0;                   // share of right ones among all that have not failed
  std::vector<double> repeat_scores;  // of repeats with at least one sample
  // How far the score would stray if the same questions were asked as often again.
  std::optional<double> repeats_error;
  // How far it would stray with other questions of the same kind: over the questions' means.
  std::optional<double> questions_error;
  std::vector<CategoryScore> categories;  // by name; empty where there are none
  double invalid_share = 0;               // of what the score counts
  int64_t completion_tokens = 0;
  double mean_completion_tokens = 0;
  std::string first_error;  // of the samples that were refused or failed
};

// Each question and repeat once, texts not needed.
Summary summarize(std::span<const Sample> samples);

// Mean of pass_at(k) over the questions with at least k samples; nothing where there is none.
std::optional<double> mean_pass_at(std::span<const Sample> samples, int64_t k);

json::Value to_json(const Summary& summary);

}  // namespace winnow::eval
