#include "eval/needle_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "bench/python_random.h"
#include "eval/number_answer.h"

namespace winnow::eval {
namespace {

using Words = std::array<std::string_view, 16>;

constexpr Words kWho = {"miller", "gardener", "captain", "weaver", "teacher", "painter",
                        "baker",  "driver",   "farmer",  "sailor", "doctor",  "tailor",
                        "singer", "mason",    "hunter",  "printer"};
constexpr Words kDoes = {"carried", "repaired", "sold",    "counted", "painted", "borrowed",
                         "hid",     "measured", "cleaned", "moved",   "bought",  "described",
                         "weighed", "sorted",   "wrapped", "drew"};
constexpr Words kWhat = {"lanterns", "baskets", "ladders",  "kettles", "carpets", "barrels",
                         "candles",  "boots",   "chairs",   "ropes",   "bottles", "clocks",
                         "windows",  "wheels",  "blankets", "maps"};
constexpr Words kWhere = {"harbour", "mill",   "bridge", "market", "orchard", "station",
                          "church",  "meadow", "tower",  "garden", "valley",  "library",
                          "forest",  "quarry", "inn",    "school"};
constexpr Words kWhen = {
    "before sunrise", "after the storm",     "on a cold morning", "late in autumn",
    "without a word", "for the second time", "during the fair",   "at low tide",
    "in great haste", "with some regret",    "as every year",     "by candlelight",
    "after lunch",    "in the old style",    "on market day",     "with much noise"};
constexpr Words kName = {"Alma",  "Boris", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo",
                         "Irene", "Jonas", "Karla", "Louis", "Marta", "Nils",  "Olga",  "Pavel"};

class Writer {
 public:
  explicit Writer(bench::PythonRandom& random) : random_(random) {}

  std::string filler() {
    return fmt::format("The {} {} {} {} near the {} {}.", pick(kWho), pick(kDoes),
                       2 + random_.below(97), pick(kWhat), pick(kWhere), pick(kWhen));
  }
  std::string_view pick(const Words& words) { return words[random_.below(words.size())]; }
  std::string pass_number() { return std::to_string(random_.randint(1000000, 9999999)); }

 private:
  bench::PythonRandom& random_;
};

std::string needle(std::string_view name, std::string_view number) {
  return fmt::format("The pass number of {} is {}.", name, number);
}

struct Cell {
  int64_t length;
  int64_t depth;
};

std::vector<std::string> filler_of_length(const NeedleOptions& options,
                                          int64_t length,
                                          Writer& writer) {
  std::vector<std::string> sentences;
  for (int64_t have = 0; have < length;) {
    sentences.push_back(writer.filler());
    have += options.count ? options.count(sentences.back() + " ") : num_words(sentences.back());
  }
  return sentences;
}

Question ask(const NeedleOptions& options, Cell cell, int64_t n, bench::PythonRandom& random) {
  Writer writer(random);
  std::vector<std::string> sentences = filler_of_length(options, cell.length, writer);
  const auto num_names = static_cast<size_t>(options.num_distractors) + 1;
  std::vector<size_t> names = random.sample(kName.size(), std::min(num_names, kName.size()));
  const std::string label = writer.pass_number();
  for (size_t i = 1; i < names.size(); ++i) {
    const uint32_t at = random.below(static_cast<uint32_t>(sentences.size()) + 1);
    sentences.insert(sentences.begin() + at, needle(kName[names[i]], writer.pass_number()));
  }
  const auto before = static_cast<int64_t>(sentences.size()) * cell.depth / 100;
  sentences.insert(sentences.begin() + before, needle(kName[names[0]], label));
  Question question;
  question.id = fmt::format("needle/{}/{}/{}", cell.length, cell.depth, n);
  question.category = fmt::format("{}/{}", cell.length, cell.depth);
  question.label = label;
  question.prompt = "Read this text. A question follows it.\n\n";
  for (const std::string& sentence : sentences) (question.prompt += sentence) += ' ';
  question.prompt += fmt::format("\n\nWhat is the pass number of {}? Answer with the number alone.",
                                 kName[names[0]]);
  return question;
}

json::Array as_json(const std::vector<int64_t>& values) {
  return json::Array(values.begin(), values.end());
}

}  // namespace

int64_t num_words(std::string_view text) {
  int64_t count = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    count += !space && !inside;
    inside = !space;
  }
  return count;
}

Task needle_task(const NeedleOptions& options) {
  Task task;
  task.name = "needle";
  for (const int64_t length : options.lengths) {
    for (const int64_t depth : options.depths) {
      // A cell's questions do not depend on which other cells are asked.
      bench::PythonRandom random(options.seed + static_cast<uint64_t>(length) * 1009 +
                                 static_cast<uint64_t>(depth) * 1000003);
      for (int64_t n = 0; n < options.per_cell; ++n) {
        task.questions.push_back(ask(options, {length, depth}, n, random));
      }
    }
  }
  std::vector<std::string> labels;
  for (const Question& question : task.questions) labels.push_back(question.label);
  task.grade = [labels = std::move(labels)](size_t i, std::string_view answer) -> Verdict {
    const auto number = answer_number(answer);
    if (!number) return {};
    return {number->text, number->text == labels[i] ? Outcome::kRight : Outcome::kWrong};
  };
  task.settings = {
      {"lengths", as_json(options.lengths)},        {"depths", as_json(options.depths)},
      {"unit", options.count ? "tokens" : "words"}, {"per_cell", options.per_cell},
      {"num_distractors", options.num_distractors}, {"text_seed", options.seed}};
  return task;
}

}  // namespace winnow::eval
