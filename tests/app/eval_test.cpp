// winnow eval as a user runs it: against a server whose answers are known, and against winnow
// serve.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <map>

#include "base/json.h"
#include "base/mapped_file.h"
#include "testing/answering_server.h"
#include "testing/child_process.h"
#include "testing/made_model.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

using testing::AnsweringServer;
using testing::ModelAnswer;

class Eval : public ::testing::Test {
 protected:
  std::string output(const std::string& name = "out.jsonl") const { return folder_.file(name); }

  testing::ProgramResult run(const std::string& arguments) const {
    return testing::run_program(
        fmt::format("cd {} && {} eval {}", folder_.path(), WINNOW_PROGRAM, arguments));
  }

  // The object that --json prints.
  json::Value figures(const std::string& arguments) const {
    const testing::ProgramResult result = run(arguments + " --json 2>/dev/null");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const Result<json::Value> parsed = json::parse(result.output);
    EXPECT_TRUE(parsed.ok()) << result.output;
    return parsed.ok() ? parsed.value() : json::Value();
  }

  static double number(const json::Value& figures, std::string_view name) {
    const json::Value* value = figures.find(name);
    return value != nullptr && value->is_number() ? value->as_number() : -1;
  }

  static void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
    for (const char* line : lines) {
      EXPECT_NE(text.find(line), std::string::npos) << text << "\n lacks: " << line;
    }
  }

  // As many questions as rows; the right choice is "right".
  std::string gpqa_csv(int rows) const {
    std::string csv =
        "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n";
    for (int i = 0; i < rows; ++i) csv += fmt::format("\"Number {}, \n?\",right,w1,w2,w3\n", i);
    return folder_.write("gpqa.csv", csv);
  }

  // "B" where the prompt has "B) right".
  static std::string right_letter(std::string_view prompt) {
    return std::string(1, prompt[prompt.find(") right") - 1]);
  }

  const testing::TempFolder folder_;
};

// The questions that come with Winnow, answered by their own worked answers.
class Gsm8k : public Eval {
 protected:
  Gsm8k() {
    std::ifstream file(WINNOW_SOURCE_DIR "/data/gsm8k/test.jsonl");
    std::string line;
    for (int row = 0; std::getline(file, line); ++row) {
      const json::Value parsed = json::parse(line).value();
      const std::string prompt = "Question: " + parsed.find("question")->as_string() + "\nAnswer:";
      rows_[prompt] = {row, parsed.find("answer")->as_string()};
    }
  }

  struct Row {
    int row;
    std::string answer;
  };

  ModelAnswer answer(std::string_view prompt) const {
    const size_t begin = prompt.rfind("Question: ");
    const auto found = rows_.find(std::string(prompt.substr(begin == prompt.npos ? 0 : begin)));
    if (found == rows_.end()) return {.text = ""};  // the common prefix
    if (found->second.row < 10) return {.text = "#### 123456789"};
    if (found->second.row < 15) return {.text = "I do not know."};
    return {.text = found->second.answer, .completion_tokens = 100};
  }

  std::map<std::string, Row> rows_;
};

TEST_F(Gsm8k, AllQuestionsByTheOldScriptsRules) {
  AnsweringServer server([&](std::string_view prompt, int64_t) { return answer(prompt); });
  const auto result = run(fmt::format(
      "gsm8k --num-shots 20 --num-questions 1319 --parallel 1319 --host http://127.0.0.1 --port {} "
      "--parity --output {} --result-file line.jsonl",
      server.port(), output()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  expect_lines(result.output,
               {"Accuracy: 0.989\n", "Invalid: 0.004\n", "Latency: ", "Output throughput: ",
                "1304 right, 10 wrong, 5 invalid, 0 refused, 0 failed"});
  EXPECT_EQ(server.asked().size(), 1320u);  // and the common prefix
  const json::Value line = json::parse(read_file(folder_.file("line.jsonl"))).value();
  EXPECT_EQ(line.find("accuracy")->as_number(), 0.989);
  EXPECT_EQ(line.find("num_requests")->as_integer(), 1319);
}

TEST_F(Gsm8k, TheQuestionsBehindTheShots) {
  AnsweringServer server([&](std::string_view prompt, int64_t) { return answer(prompt); });
  const json::Value f = figures(
      fmt::format("gsm8k --num-shots 12 --num-questions 1319 --parallel 300 --port {} --output {}",
                  server.port(), output()));
  EXPECT_EQ(number(f, "num_questions"), 1307);
  EXPECT_EQ(number(f, "num_invalid"), 3);
  EXPECT_EQ(number(f, "num_wrong"), 0);
  EXPECT_DOUBLE_EQ(number(f, "score"), 1304.0 / 1307);
  EXPECT_EQ(number(f, "mean_completion_tokens"), (1304 * 100.0 + 3 * 10) / 1307);
}

TEST_F(Gsm8k, GoesOnAfterAnInterrupt) {
  std::atomic<bool> slow = true;
  AnsweringServer server([&](std::string_view prompt, int64_t idx) {
    while (slow && idx > 30) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return answer(prompt);
  });
  const std::vector<std::string> line = {WINNOW_PROGRAM,
                                         "eval",
                                         "gsm8k",
                                         "--num-q",
                                         "200",
                                         "--num-shots",
                                         "5",
                                         "--port",
                                         std::to_string(server.port()),
                                         "--parallel",
                                         "4",
                                         "--output",
                                         output()};
  testing::ChildProcess program(line);
  ASSERT_TRUE(program.wait_for("gsm8k 20/200")) << program.output();
  program.signal(SIGINT);
  slow = false;
  EXPECT_EQ(program.wait(), 1);
  expect_lines(program.output(), {"interrupted", "--resume"});
  const auto before = static_cast<int64_t>(server.asked().size());
  EXPECT_LT(before, 60);
  const json::Value f = figures(fmt::format("gsm8k --num-q 200 --num-shots 5 --port {} --resume {}",
                                            server.port(), output()));
  EXPECT_EQ(number(f, "num_questions"), 200);
  EXPECT_EQ(number(f, "num_right"), 190);
  // What had an answer was not asked again (the prefix was, and what was under way).
  EXPECT_LE(static_cast<int64_t>(server.asked().size()), 201 + 1 + 8);
  const auto other = run(fmt::format("gsm8k --num-q 200 --num-shots 4 --port {} --resume {}",
                                     server.port(), output()));
  EXPECT_EQ(other.exit_code, 1);
  expect_lines(other.output, {"num_shots"});
}

// Killed again and again without a word: no answer counts twice, none is missing.
TEST_F(Gsm8k, GoesOnAfterBeingKilled) {
  std::atomic<int64_t> let_through = 0;
  AnsweringServer server([&](std::string_view prompt, int64_t idx) {
    while (idx >= let_through) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return answer(prompt);
  });
  const std::string port = std::to_string(server.port());
  const std::vector<std::string> asked = {
      WINNOW_PROGRAM, "eval", "gsm8k",    "--num-q", "100",        "--port", port,
      "--num-shots",  "0",    "--repeat", "2",       "--parallel", "4"};
  for (const int64_t share : {20, 80}) {
    std::vector<std::string> line = asked;
    line.insert(line.end(), {share == 20 ? "--output" : "--resume", output()});
    testing::ChildProcess program(line);
    let_through += 60;
    ASSERT_TRUE(program.wait_for(fmt::format("gsm8k {}/200", share))) << program.output();
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait(), 128 + SIGKILL);
  }
  let_through = INT64_MAX;
  const json::Value f = figures(fmt::format(
      "gsm8k --num-q 100 --num-shots 0 --repeat 2 --port {} --resume {}", port, output()));
  EXPECT_EQ(number(f, "num_right"), 2 * 85);
  EXPECT_EQ(number(f, "num_wrong") + number(f, "num_invalid"), 2 * 15);
  EXPECT_NE(json::dump(*f.find("notes")).find("of an earlier run"), std::string::npos);
}

TEST_F(Eval, GpqaRepeatsGiveMeanAndError) {
  // Right in all repeats but for question 0, which is right in half of them, and a few that are
  // cut off or unreadable.
  std::atomic<int> first = 0;
  AnsweringServer server([&](std::string_view prompt, int64_t) -> ModelAnswer {
    if (prompt.find("Number 1, ") != prompt.npos) {
      return {.text = "", .reasoning = "Answer: A", .finish_reason = "length"};
    }
    if (prompt.find("Number 2, ") != prompt.npos) return {.text = "**Answer:** A"};
    if (prompt.find("Number 0, ") != prompt.npos && first++ % 2 == 0) {
      return {.text = "Answer: a"};
    }
    return {.text = "So.\nAnswer: " + right_letter(prompt)};
  });
  const auto result = run(fmt::format(
      "gpqa --port {} --num-examples 20 --max-tokens 128000 --repeat 8 --thinking-mode glm-45 "
      "--data-path {} --output {}",
      server.port(), gpqa_csv(20), output()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  expect_lines(result.output, {"Repeat: 8, mean: 0.", "Scores: ['0.",
                               "Mean latency: ", "over 8 repeats", "temperature 0"});
  EXPECT_EQ(server.asked().size(), 160u);
  const json::Value body = server.asked()[0];
  EXPECT_TRUE(body.find("chat_template_kwargs")->find("enable_thinking")->as_bool());
  EXPECT_EQ(body.find("max_tokens")->as_integer(), 128000);
  EXPECT_EQ(body.find("stop"), nullptr);
  const json::Value f = json::parse(read_file(folder_.file("out.json"))).value();
  EXPECT_EQ(number(f, "num_truncated"), 8);
  EXPECT_EQ(number(f, "num_invalid"), 16);
  EXPECT_EQ(number(f, "num_wrong"), 4);
  EXPECT_DOUBLE_EQ(number(f, "score"), 140.0 / 160);
  EXPECT_EQ(f.find("repeat_scores")->as_array().size(), 8u);
  double squares = 0;
  for (const json::Value& score : f.find("repeat_scores")->as_array()) {
    squares += (score.as_number() - 0.875) * (score.as_number() - 0.875);
  }
  EXPECT_NEAR(number(f, "standard_error_over_repeats"), std::sqrt(squares / 7 / 8), 1e-12);
  EXPECT_NE(read_file(folder_.file("out.html")).find("Number 3"), std::string::npos);
}

TEST_F(Eval, NeedleFindsWhatTheModelReads) {
  AnsweringServer server([&](std::string_view prompt, int64_t) -> ModelAnswer {
    const size_t asked = prompt.rfind("pass number of ") + 15;
    const std::string name(prompt.substr(asked, prompt.find('?', asked) - asked));
    const size_t said = prompt.find("pass number of " + name + " is ");
    // A reader of the first half alone.
    if (said > prompt.size() / 2) return {.text = "1"};
    return {.text = std::string(prompt.substr(said + 19 + name.size(), 7))};
  });
  const auto result = run(fmt::format(
      "needle --lengths 300,600 --depths 10,90 --per-cell 3 --base-url http://127.0.0.1:{} "
      "--output {}",
      server.port(), output()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  expect_lines(result.output, {"Score: 0.500", "      10  1.00  1.00", "      90  0.00  0.00"});
}

TEST_F(Eval, HumanevalRunsOnlyWhatIsAllowed) {
  const std::string data = folder_.write(
      "h.jsonl",
      R"({"task_id":"HumanEval/0","entry_point":"twice","prompt":"def twice(x):\n    \"\"\"2x\"\"\"\n",)"
      R"("test":"def check(f):\n    assert f(2) == 4"})");
  std::atomic<int> n = 0;
  AnsweringServer server([&](std::string_view, int64_t) -> ModelAnswer {
    return {.text = n++ == 0 ? "```python\ndef twice(x):\n    return x\n```"
                             : "```python\ndef twice(x):\n    return 2 * x\n```"};
  });
  const std::string line =
      fmt::format("humaneval --data-path {} --port {} --output {}", data, server.port(), output());
  const auto refused = run(line);
  EXPECT_EQ(refused.exit_code, 1);
  expect_lines(refused.output, {"--allow-code-execution"});
  const json::Value f = figures(line + " --allow-code-execution");
  EXPECT_DOUBLE_EQ(number(f, "pass@1"), 0.8);
  EXPECT_DOUBLE_EQ(number(f, "pass@2"), 1);
}

TEST_F(Eval, ComparesTwoServersAndTwoFiles) {
  auto answerer = [](int wrong) {
    return [wrong](std::string_view prompt, int64_t) -> ModelAnswer {
      const size_t at = prompt.find("Number ") + 7;
      const bool right = std::stoi(std::string(prompt.substr(at, 3))) >= wrong;
      return {.text = "Answer: " + (right ? right_letter(prompt) : "Z")};
    };
  };
  AnsweringServer good(answerer(2), "good");
  AnsweringServer bad(answerer(14), "bad");
  const auto asked = run(fmt::format("compare {} {} --eval-name gpqa --data-path {} --output {}",
                                     good.url(), bad.url(), gpqa_csv(40), output()));
  EXPECT_EQ(asked.exit_code, 0) << asked.output;
  expect_lines(asked.output, {"gpqa, 40 questions", "B is worse than A by 30.00 points"});
  const json::Value f =
      figures(fmt::format("compare {} {}", output("out_b.jsonl"), output("out_a.jsonl")));
  EXPECT_DOUBLE_EQ(number(f, "difference"), 0.3);
  EXPECT_EQ(number(f, "num_better_b"), 12);
  // Nothing is asked of A where B cannot take part, or the files are there already.
  const size_t before = good.asked().size();
  for (const auto& [b, out] : {std::pair<std::string, std::string>{"http://127.0.0.1:1", "n.jsonl"},
                               {"/nowhere.jsonl", "n.jsonl"},
                               {bad.url(), "out.jsonl"}}) {
    const auto refused =
        run(fmt::format("compare {} {} --eval-name gpqa --data-path {} --output {}", good.url(), b,
                        gpqa_csv(40), output(out)));
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    EXPECT_EQ(good.asked().size(), before) << refused.output;
  }
  const auto unnamed = run(fmt::format("compare {} {}", good.url(), bad.url()));
  EXPECT_EQ(unnamed.exit_code, 1);
  expect_lines(unnamed.output, {"--eval-name", "gsm8k"});
}

TEST_F(Eval, SaysWhatIsWrong) {
  auto refusal = [&](const std::string& arguments) {
    const auto result = run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments << "\n" << result.output;
    return result.output;
  };
  expect_lines(refusal("gsm8k --port 1 --num-q 2"), {"/get_model_info", "127.0.0.1:1"});
  expect_lines(refusal("gpqa --port 1"),
               {"gpqa_diamond.csv: is not there", "--data-path", "docs/evaluations.md"});
  const std::string torn = folder_.write("torn.csv", "Question,Correct Answer\n\"x");
  expect_lines(refusal("gpqa --data-path " + torn), {"torn.csv", "line 2", "never closed"});
  const std::string lacking = folder_.write("l.csv", "Question,Correct Answer\nx,y\n");
  const std::string header = "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2\n";
  expect_lines(refusal("gpqa --data-path " + folder_.write("h.csv", header)),
               {"h.csv: has no rows"});
  expect_lines(refusal("gpqa --data-path " + lacking), {"l.csv:2", "Incorrect Answer 1"});
  expect_lines(refusal("gsm8k --thinking-mode glm-45"), {"--thinking-mode", "--api chat"});
  expect_lines(refusal("gpqa --thinking-mode gpt"), {"--thinking-mode gpt", "glm-45"});
  expect_lines(refusal("gpqa --chat-template-kwargs 3"), {"--chat-template-kwargs 3"});
  expect_lines(refusal("gsm8k --num-shots 1319 --port 1"), {"--num-shots 1319"});
  expect_lines(refusal("gsm8k --host ftp://x"), {"--host: ", "ftp://x"});
  expect_lines(refusal("gsm8k --num-shos 3"), {"--num-shots"});
  expect_lines(refusal("gsm8k --result-file /nowhere/r"), {"--result-file /nowhere/r: cannot"});
  const std::string twice = folder_.write("t.jsonl", R"({"task_id":"a","prompt":"p","test":"t",)"
                                                     R"("entry_point":"f"})"
                                                     "\n"
                                                     R"({"task_id":"a","prompt":"q","test":"t",)"
                                                     R"("entry_point":"f"})"
                                                     "\n");
  expect_lines(refusal("humaneval --allow-code-execution --data-path " + twice),
               {"two questions of the data set are called humaneval/a"});
  expect_lines(refusal("compare /nowhere.jsonl /nowhere.jsonl"), {"/nowhere.jsonl"});
  AnsweringServer failing([](std::string_view, int64_t) -> ModelAnswer {
    return {.text = "out of order", .status = 500};
  });
  expect_lines(refusal(fmt::format("gsm8k --num-q 3 --num-shots 0 --port {} --max-retries 0 "
                                   "--output {}",
                                   failing.port(), output())),
               {"3 failed", "3 requests failed", "--resume", "out of order"});
  AnsweringServer refusing(
      [](std::string_view, int64_t) -> ModelAnswer { return {.text = "too long", .status = 400}; });
  expect_lines(refusal(fmt::format("gsm8k --num-q 3 --num-shots 0 --port {} --output {}",
                                   refusing.port(), output("refused.jsonl"))),
               {"3 refused", "refused every request", "too long"});
}

// The reference report's two lines, at small counts, against winnow serve on the CPU.
TEST_F(Eval, TheReportsLinesAgainstWinnowServe) {
  if (testing::made_model().empty()) GTEST_SKIP() << "no python3 to make a model with";
  testing::ChildProcess server({WINNOW_PROGRAM, "serve", "--model-path", testing::made_model(),
                                "--port", "0", "--threads", "1", "--max-total-tokens", "65536",
                                "--reasoning-parser", "glm45", "--served-model-name", "tiny"});
  ASSERT_TRUE(server.wait_for("ready to roll!")) << server.output();
  const std::string_view mark = "listening on http://127.0.0.1:";
  const int port = std::stoi(server.output().substr(server.output().find(mark) + mark.size()));
  const auto gsm8k = run(fmt::format(
      "gsm8k --num-shots 2 --num-questions 8 --parallel 8 --port {} --max-new-tokens 4 --output {}",
      port, output("g.jsonl")));
  EXPECT_EQ(gsm8k.exit_code, 0) << gsm8k.output;
  expect_lines(gsm8k.output, {"Accuracy: 0.000\n", "Invalid: ", "Latency: ", "Output throughput: ",
                              " 0 refused, 0 failed"});
  const auto gpqa = run(fmt::format(
      "gpqa --num-examples 4 --max-tokens 4 --repeat 3 --thinking-mode glm-45 --port {} "
      "--data-path {} --output {}",
      port, gpqa_csv(6), output("q.jsonl")));
  EXPECT_EQ(gpqa.exit_code, 0) << gpqa.output;
  expect_lines(gpqa.output,
               {"Repeat: 3, mean: 0.000", "Scores: ['0.000', '0.000', '0.000']", "gpqa of tiny",
                "0 right, 0 wrong, 12 invalid, 0 refused, 0 failed; 12 truncated"});
  // The same server, asked twice with the same questions: deterministic, so no difference.
  const auto same = run(fmt::format("compare {} {}", output("g.jsonl"), output("g.jsonl")));
  expect_lines(same.output, {"the same on every one of the 8 questions"});
}

}  // namespace
}  // namespace winnow
