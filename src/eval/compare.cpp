#include "eval/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/table.h"

namespace winnow::eval {
namespace {

struct Asked {
  std::string label;
  std::string prompt;
  std::map<int64_t, double> scores;  // by repeat
};

using Side = std::map<std::string, Asked>;  // by question id

double mean_of(const Asked& asked) {
  double sum = 0;
  for (const auto& [repeat, score] : asked.scores) sum += score;
  return sum / static_cast<double>(asked.scores.size());
}

SampleFileHeader read_side(const std::string& path, Side& side) {
  return read_samples(path, [&](const Sample& sample) {
    Asked& asked = side[sample.id];
    asked.label = sample.label;
    asked.prompt = sample.prompt;
    if (sample.failed()) {
      asked.scores.erase(sample.repeat);
    } else {
      asked.scores[sample.repeat] = sample.score();
    }
  });
}

std::vector<std::string> differing(const json::Object& a, const json::Object& b) {
  std::vector<std::string> names;
  const json::Value left = a;
  const json::Value right = b;
  for (const auto& [name, value] : a) {
    const json::Value* other = right.find(name);
    if (other == nullptr || !(*other == value)) names.push_back(name);
  }
  for (const auto& [name, value] : b) {
    if (left.find(name) == nullptr) names.push_back(name);
  }
  return names;
}

std::string side_name(const SampleFileHeader& header) {
  return header.model + " at " + header.server;
}

std::string points(double share) { return fmt::format("{:+.2f}", 100 * share); }
std::string unsigned_points(double share) { return fmt::format("{:.2f}", 100 * std::fabs(share)); }

}  // namespace

Comparison compare_samples(const std::string& path_a, const std::string& path_b) {
  Side a;
  Side b;
  const SampleFileHeader header_a = read_side(path_a, a);
  const SampleFileHeader header_b = read_side(path_b, b);
  if (header_a.task != header_b.task) {
    throw_error("{} is of {}, {} of {}", path_a, header_a.task, path_b, header_b.task);
  }
  Comparison result;
  result.task = header_a.task;
  result.name_a = side_name(header_a);
  result.name_b = side_name(header_b);
  result.repeats_a = header_a.repeats;
  result.repeats_b = header_b.repeats;
  result.differing_settings = differing(header_a.settings, header_b.settings);
  std::vector<double> scores_a;
  std::vector<double> scores_b;
  for (const auto& [id, asked] : a) {
    const auto other = b.find(id);
    if (other == b.end() || other->second.scores.empty() || asked.scores.empty()) continue;
    if (asked.label != other->second.label || asked.prompt != other->second.prompt) {
      throw_error("{}: \"{}\" is another question in {}", path_a, id, path_b);
    }
    scores_a.push_back(mean_of(asked));
    scores_b.push_back(mean_of(other->second));
    result.num_better_a += scores_a.back() > scores_b.back();
    result.num_better_b += scores_b.back() > scores_a.back();
  }
  if (scores_a.size() < 2) {
    throw_error("{} and {} have {} answered questions in common; at least 2 are needed", path_a,
                path_b, scores_a.size());
  }
  Side all = a;
  all.insert(b.begin(), b.end());
  result.num_left_out = static_cast<int64_t>(all.size() - scores_a.size());
  result.score_a = mean(scores_a);
  result.score_b = mean(scores_b);
  result.difference = paired_difference(scores_a, scores_b);
  result.sign_test_p = sign_test(result.num_better_a, result.num_better_b);
  return result;
}

std::string conclusion(const Comparison& c) {
  const PairedDifference& d = c.difference;
  if (d.num_differing == 0) {
    // Nothing in n questions: with 95 % confidence fewer than 3 / n of all.
    return fmt::format(
        "A and B score the same on every one of the {} questions; a true difference above {} "
        "points would have shown.",
        d.num_pairs, unsigned_points(std::min(1.0, 3.0 / static_cast<double>(d.num_pairs))));
  }
  const std::string interval = fmt::format("95 % interval {} to {} points, {} questions",
                                           points(d.low), points(d.high), d.num_pairs);
  if (d.low > 0 || d.high < 0) {
    return fmt::format("B is {} than A by {} points ({}): more than chance explains.",
                       d.mean > 0 ? "better" : "worse", unsigned_points(d.mean), interval);
  }
  return fmt::format(
      "No difference between A and B is shown: B - A is {} points ({}). Differences below about {} "
      "points would mostly go unseen with these questions and repeats.",
      points(d.mean), interval, unsigned_points(d.detectable));
}

std::string comparison_text(const Comparison& c) {
  const PairedDifference& d = c.difference;
  Table table({"", ">score", ">better on", ">repeats", ""});
  table.add_row({"A", fmt::format("{:.4f}", c.score_a), std::to_string(c.num_better_a),
                 std::to_string(c.repeats_a), c.name_a});
  table.add_row({"B", fmt::format("{:.4f}", c.score_b), std::to_string(c.num_better_b),
                 std::to_string(c.repeats_b), c.name_b});
  std::string out = fmt::format("{}, {} questions\n{}", c.task, d.num_pairs, table.to_text());
  out +=
      fmt::format("B - A: {:+.4f} +- {:.4f} (standard error), 95 % interval {:+.4f} to {:+.4f}\n",
                  d.mean, d.standard_error, d.low, d.high);
  out += fmt::format("Sign test: p = {:.3g}\n", c.sign_test_p);
  if (c.num_left_out > 0) {
    out += fmt::format("Left out: {} questions without an answer on both sides\n", c.num_left_out);
  }
  if (!c.differing_settings.empty()) {
    out += fmt::format("Settings that differ: {}\n", fmt::join(c.differing_settings, ", "));
  }
  return out + conclusion(c) + "\n";
}

json::Value to_json(const Comparison& c) {
  const PairedDifference& d = c.difference;
  return json::Object{
      {"eval", c.task},
      {"a", c.name_a},
      {"b", c.name_b},
      {"num_questions", d.num_pairs},
      {"num_left_out", c.num_left_out},
      {"score_a", c.score_a},
      {"score_b", c.score_b},
      {"difference", d.mean},
      {"standard_error", d.standard_error},
      {"interval_95", json::Array{d.low, d.high}},
      {"detectable", d.detectable},
      {"num_better_a", c.num_better_a},
      {"num_better_b", c.num_better_b},
      {"sign_test_p", c.sign_test_p},
      {"differing_settings", json::Array(c.differing_settings.begin(), c.differing_settings.end())},
      {"conclusion", conclusion(c)}};
}

}  // namespace winnow::eval
