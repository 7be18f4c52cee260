// Prompts, orders and graders of every evaluation.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "eval/choice_task.h"
#include "eval/gsm8k_task.h"
#include "eval/humaneval_task.h"
#include "eval/math_task.h"
#include "eval/needle_task.h"
#include "testing/errors.h"

namespace winnow::eval {
namespace {

using testing::error_of;
using testing::expect_says;

Outcome graded(const Task& task, size_t i, std::string_view answer) {
  return task.grade(i, answer).outcome;
}

std::vector<Record> small_gsm8k() {
  return json_records("t.jsonl",
                      "{\"question\":\"1+1?\",\"answer\":\"It is 2.\\n#### 2\"}\n"
                      "{\"question\":\"Debt?\",\"answer\":\"a\\n#### -10\"}\n"
                      "{\"question\":\"Big?\",\"answer\":\"b\\n#### 1,450,000\"}\n");
}

TEST(Gsm8kTask, SkipsTheShotRowsAndReadsSigns) {
  const Task task = gsm8k_task(small_gsm8k(), {.num_shots = 1, .num_questions = 5});
  EXPECT_EQ(task.common_prefix, "Question: 1+1?\nAnswer: It is 2.\n#### 2\n\n");
  ASSERT_EQ(task.questions.size(), 2u);
  EXPECT_EQ(task.questions[0].id, "gsm8k/1");
  EXPECT_EQ(task.questions[0].prompt, "Question: Debt?\nAnswer:");
  EXPECT_EQ(task.questions[0].label, "-10");
  EXPECT_EQ(graded(task, 0, "so -10"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "so 10"), Outcome::kWrong);
  EXPECT_EQ(graded(task, 1, "$1450000.00"), Outcome::kRight);
  EXPECT_EQ(graded(task, 1, "many"), Outcome::kInvalid);
  ASSERT_EQ(task.notes.size(), 1u);
  expect_says(task.notes[0], {"2 of the 5", "after the shots"});
}

TEST(Gsm8kTask, ParityAsksTheShotsTooAndDropsSigns) {
  const Task task = gsm8k_task(small_gsm8k(), {.num_shots = 1, .num_questions = 2, .parity = true});
  ASSERT_EQ(task.questions.size(), 2u);
  EXPECT_EQ(task.questions[0].id, "gsm8k/0");
  EXPECT_EQ(task.questions[1].label, "10");
  EXPECT_EQ(graded(task, 1, "10"), Outcome::kRight);
  EXPECT_EQ(graded(task, 1, "-10"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "2.00"), Outcome::kWrong);
  EXPECT_EQ(graded(task, 0, "02"), Outcome::kInvalid);
}

TEST(Gsm8kTask, TheDataThatComesWithWinnow) {
  const std::vector<Record> rows = json_records("gsm8k", gsm8k_test_jsonl());
  ASSERT_EQ(rows.size(), 1319u);
  const Task task = gsm8k_task(rows, {.num_shots = 20, .num_questions = 0});
  EXPECT_EQ(task.questions.size(), 1299u);
  // Every worked answer gets full marks from both scorers.
  const Task all = gsm8k_task(rows, {.num_shots = 0, .num_questions = 0});
  const Task parity = gsm8k_task(rows, {.num_shots = 0, .num_questions = 0, .parity = true});
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(graded(all, i, rows[i].text("answer")), Outcome::kRight) << i;
    EXPECT_EQ(graded(parity, i, rows[i].text("answer")), Outcome::kRight) << i;
  }
}

TEST(Gsm8kTask, NamesWhatIsWrong) {
  expect_says(error_of([] { gsm8k_task(small_gsm8k(), {.num_shots = 3}); }),
              {"--num-shots 3", "3"});
  expect_says(error_of([] {
                gsm8k_task(json_records("x.jsonl", R"({"question":"q","answer":"7"})"),
                           {.num_shots = 0});
              }),
              {"x.jsonl:1", "####"});
  expect_says(error_of([] { gsm8k_task(json_records("x.jsonl", "{}"), {.num_shots = 0}); }),
              {"x.jsonl:1", "\"answer\""});
}

std::vector<Record> gpqa_rows(int count) {
  std::string csv =
      "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n";
  for (int i = 0; i < count; ++i) csv += fmt::format("\"q{0},\n\"\"{0}\"\"\",r,w1,w2,w3\n", i);
  return csv_records("gpqa.csv", csv);
}

TEST(GpqaTask, OrderAndPermutationsOfTheReference) {
  const Task task = gpqa_task(gpqa_rows(198), {.num_examples = 198});
  ASSERT_EQ(task.questions.size(), 198u);
  const std::vector<std::string> order = {"98", "194", "107", "10", "66", "130"};
  // The right answer is choice 0: permutations 1032, 0213, 0123, 2130, 0132, 0213.
  const std::string labels = "BAADAA";
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(task.questions[i].id, "gpqa/" + order[i]);
    EXPECT_EQ(task.questions[i].label, std::string(1, labels[i]));
  }
  EXPECT_EQ(task.questions.back().id, "gpqa/92");
  EXPECT_EQ(task.questions.back().label, "A");
  EXPECT_EQ(
      task.questions[0].prompt,
      "Answer the following multiple choice question. The last line of your response should be of "
      "the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think "
      "step by step before answering.\n\nq98,\n\"98\"\n\nA) w1\nB) r\nC) w3\nD) w2");
}

TEST(GpqaTask, FileOrderWithoutNumExamples) {
  const Task task = gpqa_task(gpqa_rows(6), {});
  std::string labels;
  for (const Question& question : task.questions) labels += question.label;
  EXPECT_EQ(labels, "CDCBCC");  // 3102 3120 2301 2031 1302 2103
  EXPECT_EQ(task.questions[3].id, "gpqa/3");
  EXPECT_EQ(graded(task, 0, "Answer: C"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "Answer: c"), Outcome::kWrong);
  EXPECT_EQ(graded(task, 0, "**Answer:** C"), Outcome::kInvalid);
  const Task lenient = gpqa_task(gpqa_rows(6), {.lenient = true});
  EXPECT_EQ(graded(lenient, 0, "**Answer:** c"), Outcome::kRight);
  expect_says(error_of([] { gpqa_task(gpqa_rows(6), {.num_examples = 7}); }),
              {"7 questions", "has 6"});
}

TEST(MmluTask, CategoriesAndLabels) {
  const auto rows = csv_records("m.csv",
                                "Question,A,B,C,D,Answer,Subject\nq,1,2,3,4,B,astronomy\n"
                                "q,1,2,3,4,D,virology\nq,1,2,3,4,A,sociology\n");
  const Task task = mmlu_task(rows, {});
  EXPECT_EQ(task.questions[0].category, "stem");
  EXPECT_EQ(task.questions[1].category, "other");
  EXPECT_EQ(task.questions[2].category, "social_sciences");
  EXPECT_EQ(graded(task, 0, "Answer: B"), Outcome::kRight);
  EXPECT_EQ(mmlu_category("jurisprudence"), "humanities");
  expect_says(error_of([] {
                mmlu_task(csv_records("m.csv", "Question,A,B,C,D,Answer,Subject\nq,1,2,3,4,E,x\n"),
                          {});
              }),
              {"m.csv:2", "Answer", "E"});
}

TEST(LongBenchTask, PromptFiltersAndCategories) {
  const std::string row =
      R"({"_id":"x1","domain":"Code","difficulty":"hard","question":" Why? ","choice_A":"a",)"
      R"("choice_B":"b","choice_C":"c","choice_D":"d","answer":"B","context":"Text )";
  const std::string data = "[" + row + "\xC3\xA9\"}," + row + "longer\"}]";
  const Task all = longbench_task(json_records("l.json", data), {});
  EXPECT_EQ(all.questions[1].prompt,
            "Text longer\n\nWhat is the correct answer to this question: Why?\nChoices:\n(A) a\n"
            "(B) b\n(C) c\n(D) d\n\nThe correct answer is");
  EXPECT_EQ(all.questions[0].category, "Code, hard");
  EXPECT_EQ(graded(all, 0, "**The correct answer is (B)**"), Outcome::kRight);
  EXPECT_EQ(
      longbench_task(json_records("l.json", data), {.max_context_length = 6}).questions.size(),
      1u);  // characters, not bytes
  EXPECT_EQ(
      longbench_task(json_records("l.json", data), {.min_context_length = 7}).questions.size(), 1u);
  EXPECT_EQ(
      longbench_task(json_records("l.json", data), {.categories = "Law,Code"}).questions.size(),
      2u);
  expect_says(
      error_of([&] { longbench_task(json_records("l.json", data), {.categories = "Law"}); }),
      {"category"});
}

TEST(MathTask, GradesByTheLocalChecker) {
  const Task task =
      math_task(csv_records("m.csv", "Question,Answer\nHalf?,\\frac{1}{2}\nSet?,\"1, 2\"\n"), 0);
  EXPECT_EQ(graded(task, 0, "Answer: 0.5"), Outcome::kRight);
  EXPECT_EQ(graded(task, 1, "\\boxed{2, 1}"), Outcome::kRight);
  EXPECT_EQ(graded(task, 1, "Answer: 2"), Outcome::kWrong);
  EXPECT_EQ(graded(task, 1, "1 and 2"), Outcome::kInvalid);
  EXPECT_NE(task.questions[0].prompt.find("Half?"), std::string::npos);
}

TEST(AimeTask, WholeNumbersInBothWays) {
  const auto rows = json_records("a.jsonl", R"({"problem":"p","answer":"033"})");
  const Task task = aime_task(rows, {});
  EXPECT_EQ(task.questions[0].label, "33");
  EXPECT_EQ(graded(task, 0, "Answer: 41\nAnswer: 33"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "\\boxed{033}"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "Answer: $33$"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "Answer: 34"), Outcome::kWrong);
  EXPECT_EQ(graded(task, 0, "33"), Outcome::kInvalid);
  const Task parity = aime_task(rows, {.parity = true});
  EXPECT_EQ(graded(parity, 0, "Answer: 33.0"), Outcome::kRight);
  EXPECT_EQ(graded(parity, 0, "Answer: 41\nAnswer: 33"), Outcome::kWrong);
  EXPECT_EQ(graded(parity, 0, "\\boxed{33}"), Outcome::kInvalid);
  EXPECT_EQ(graded(parity, 0, "Answer: $33$"), Outcome::kInvalid);
  expect_says(
      error_of([] { aime_task(json_records("a.jsonl", R"({"question":"p","answer":1000})"), {}); }),
      {"a.jsonl:1", "999"});
}

TEST(NeedleTask, LengthsDepthsAndOneAnswer) {
  const NeedleOptions options{.lengths = {200, 400}, .depths = {0, 50, 100}, .per_cell = 2};
  const Task task = needle_task(options);
  ASSERT_EQ(task.questions.size(), 12u);
  for (size_t i = 0; i < task.questions.size(); ++i) {
    const Question& q = task.questions[i];
    const size_t at = q.prompt.find(q.label);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(q.prompt.find(q.label, at + 1), std::string::npos);
    const double depth = static_cast<double>(at) / static_cast<double>(q.prompt.size());
    const std::string wanted = q.category.substr(q.category.find('/') + 1);
    EXPECT_NEAR(depth, std::stod(wanted) / 100, 0.15) << q.category;
    const int64_t length = std::stoll(q.category);
    EXPECT_NEAR(static_cast<double>(num_words(q.prompt)), static_cast<double>(length), 70);
    EXPECT_EQ(graded(task, i, "It is " + q.label + "."), Outcome::kRight);
    EXPECT_EQ(graded(task, i, "1234"), Outcome::kWrong);
  }
  EXPECT_EQ(questions_fingerprint(task), questions_fingerprint(needle_task(options)));
  NeedleOptions other = options;
  other.seed = 1;
  EXPECT_NE(questions_fingerprint(task), questions_fingerprint(needle_task(other)));
  NeedleOptions fewer = options;
  fewer.depths = {50};
  EXPECT_EQ(needle_task(fewer).questions[0].prompt, task.questions[2].prompt);
  NeedleOptions bytes = options;
  bytes.count = [](std::string_view text) { return static_cast<int64_t>(text.size()); };
  EXPECT_LT(needle_task(bytes).questions[0].prompt.size(), 700u);
}

std::vector<Record> humaneval_rows() {
  return json_records(
      "h.jsonl", R"({"task_id":"HumanEval/0","entry_point":"twice","prompt":"def twice(x):\n)"
                 R"(    \"\"\"Doubles x.\"\"\"\n","test":"def check(f):\n    assert f(2) == 4"})");
}

TEST(HumanevalTask, BuildsProgramsFromWholeFunctionsAndBodies) {
  std::vector<std::string> programs;
  const Task task = humaneval_task(humaneval_rows(), {.run = [&](const std::string& program) {
                                     programs.push_back(program);
                                     return ProgramEnd::kPassed;
                                   }});
  EXPECT_EQ(graded(task, 0, "```python\ndef twice(x):\n    return 2 * x\n```"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "```\n    return 2 * x\n```"), Outcome::kRight);
  EXPECT_EQ(graded(task, 0, "return 2 * x"), Outcome::kInvalid);
  EXPECT_EQ(graded(task, 0, "<think>```python\nx\n```"), Outcome::kInvalid);
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_NE(programs[0].find("    pass\n\ndef twice(x):\n    return 2 * x"), std::string::npos);
  EXPECT_NE(programs[1].find("\"\"\"\n    return 2 * x\n"), std::string::npos);
  EXPECT_NE(programs[0].find("check(twice)"), std::string::npos);
}

TEST(HumanevalTask, PassAt) {
  EXPECT_DOUBLE_EQ(pass_at(5, 1, 1), 0.2);
  EXPECT_DOUBLE_EQ(pass_at(5, 1, 2), 0.4);
  EXPECT_DOUBLE_EQ(pass_at(5, 1, 5), 1);
  EXPECT_DOUBLE_EQ(pass_at(5, 0, 5), 0);
  EXPECT_DOUBLE_EQ(pass_at(5, 4, 2), 1);
  EXPECT_NEAR(pass_at(10, 3, 2), 1 - 7.0 * 6 / (10 * 9), 1e-12);
}

}  // namespace
}  // namespace winnow::eval
