#include <algorithm>
#include <array>

#include "eval/choice_task.h"

namespace winnow::eval {
namespace {

constexpr std::array<std::string_view, 18> kStem = {
    "abstract_algebra",         "astronomy",
    "college_biology",          "college_chemistry",
    "college_computer_science", "college_mathematics",
    "college_physics",          "computer_security",
    "conceptual_physics",       "electrical_engineering",
    "elementary_mathematics",   "high_school_biology",
    "high_school_chemistry",    "high_school_computer_science",
    "high_school_mathematics",  "high_school_physics",
    "high_school_statistics",   "machine_learning"};
constexpr std::array<std::string_view, 13> kHumanities = {"formal_logic",
                                                          "high_school_european_history",
                                                          "high_school_us_history",
                                                          "high_school_world_history",
                                                          "international_law",
                                                          "jurisprudence",
                                                          "logical_fallacies",
                                                          "moral_disputes",
                                                          "moral_scenarios",
                                                          "philosophy",
                                                          "prehistory",
                                                          "professional_law",
                                                          "world_religions"};
constexpr std::array<std::string_view, 12> kSocialSciences = {"econometrics",
                                                              "high_school_geography",
                                                              "high_school_government_and_politics",
                                                              "high_school_macroeconomics",
                                                              "high_school_microeconomics",
                                                              "high_school_psychology",
                                                              "human_sexuality",
                                                              "professional_psychology",
                                                              "public_relations",
                                                              "security_studies",
                                                              "sociology",
                                                              "us_foreign_policy"};

template <size_t N>
bool holds(const std::array<std::string_view, N>& subjects, std::string_view subject) {
  return std::find(subjects.begin(), subjects.end(), subject) != subjects.end();
}

}  // namespace

std::string_view mmlu_category(std::string_view subject) {
  if (holds(kStem, subject)) return "stem";
  if (holds(kHumanities, subject)) return "humanities";
  if (holds(kSocialSciences, subject)) return "social_sciences";
  return "other";
}

}  // namespace winnow::eval
