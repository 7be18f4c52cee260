#include "eval/summary.h"

#include <algorithm>
#include <map>

#include "eval/humaneval_task.h"
#include "eval/statistics.h"

namespace winnow::eval {
namespace {

struct Tally {
  double sum = 0;
  int64_t count = 0;

  void add(double score) {
    sum += score;
    ++count;
  }
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

template <typename Key>
std::vector<double> means(const std::map<Key, Tally>& tallies) {
  std::vector<double> values;
  values.reserve(tallies.size());
  for (const auto& [key, tally] : tallies) values.push_back(tally.mean());
  return values;
}

void count_outcome(const Sample& sample, Summary& summary) {
  summary.num_truncated += sample.truncated();
  summary.num_retried += sample.attempts > 1;
  if (summary.first_error.empty()) summary.first_error = sample.error;
  if (sample.failed()) {
    ++summary.num_failed;
  } else if (sample.refused) {
    ++summary.num_refused;
  } else if (sample.right()) {
    ++summary.num_right;
  } else if (sample.verdict.outcome == Outcome::kWrong) {
    ++summary.num_wrong;
  } else {
    ++summary.num_invalid;
  }
}

json::Value or_null(const std::optional<double>& value) {
  return value ? json::Value(*value) : json::Value();
}

}  // namespace

Summary summarize(std::span<const Sample> samples) {
  Summary summary;
  Tally all;
  std::map<std::string, Tally> by_question;
  std::map<std::string, Tally> by_category;
  std::map<int64_t, Tally> by_repeat;
  for (const Sample& sample : samples) {
    count_outcome(sample, summary);
    if (sample.failed()) continue;
    all.add(sample.score());
    by_question[sample.id].add(sample.score());
    by_repeat[sample.repeat].add(sample.score());
    if (!sample.category.empty()) by_category[sample.category].add(sample.score());
    summary.completion_tokens += sample.completion_tokens;
  }
  summary.num_questions = static_cast<int64_t>(by_question.size());
  summary.num_repeats = static_cast<int64_t>(by_repeat.size());
  summary.score = all.mean();
  summary.repeat_scores = means(by_repeat);
  summary.repeats_error = standard_error(summary.repeat_scores);
  summary.questions_error = standard_error(means(by_question));
  for (const auto& [name, tally] : by_category) {
    summary.categories.push_back({name, tally.count, tally.mean()});
  }
  if (all.count > 0) {
    const auto count = static_cast<double>(all.count);
    summary.invalid_share = static_cast<double>(summary.num_invalid) / count;
    summary.mean_completion_tokens = static_cast<double>(summary.completion_tokens) / count;
  }
  return summary;
}

std::optional<double> mean_pass_at(std::span<const Sample> samples, int64_t k) {
  struct Counts {
    int64_t all = 0;
    int64_t right = 0;
  };
  std::map<std::string, Counts> by_question;
  for (const Sample& sample : samples) {
    if (sample.failed()) continue;
    Counts& counts = by_question[sample.id];
    ++counts.all;
    counts.right += sample.right();
  }
  Tally tally;
  for (const auto& [id, counts] : by_question) {
    if (counts.all >= k) tally.add(pass_at(counts.all, counts.right, k));
  }
  if (tally.count == 0) return std::nullopt;
  return tally.mean();
}

json::Value to_json(const Summary& s) {
  json::Object categories;
  for (const CategoryScore& category : s.categories) {
    categories.emplace_back(category.name, json::Object{{"score", category.score},
                                                        {"num_samples", category.num_samples}});
  }
  return json::Object{
      {"score", s.score},
      {"standard_error_over_repeats", or_null(s.repeats_error)},
      {"standard_error_over_questions", or_null(s.questions_error)},
      {"repeat_scores", json::Array(s.repeat_scores.begin(), s.repeat_scores.end())},
      {"num_questions", s.num_questions},
      {"num_repeats", s.num_repeats},
      {"num_right", s.num_right},
      {"num_wrong", s.num_wrong},
      {"num_invalid", s.num_invalid},
      {"num_refused", s.num_refused},
      {"num_failed", s.num_failed},
      {"num_truncated", s.num_truncated},
      {"num_retried", s.num_retried},
      {"mean_completion_tokens", s.mean_completion_tokens},
      {"categories", std::move(categories)}};
}

}  // namespace winnow::eval
