#include "eval/sample_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "eval/compare.h"
#include "eval/html_report.h"
#include "eval/runner.h"
#include "eval/summary.h"
#include "testing/errors.h"
#include "testing/temp_folder.h"
#include "text/markup.h"

namespace winnow::eval {
namespace {

using testing::error_of;
using testing::expect_says;

SampleFileHeader header(int64_t num_questions = 4) {
  return {.task = "gpqa",
          .model = "m",
          .server = "http://h:1",
          .repeats = 2,
          .num_questions = num_questions,
          .common_prefix = "shots",
          .settings = {{"max_tokens", 10}, {"scorer", "letter"}}};
}

Sample sample(const std::string& id, int64_t repeat, Outcome outcome) {
  Sample s;
  s.id = id;
  s.repeat = repeat;
  s.category = "Physics";
  s.prompt = "p " + id;
  s.label = "A";
  s.response = "Answer: A\n\"quoted\"";
  s.finish_reason = "stop";
  s.completion_tokens = 5;
  s.verdict = {"A", outcome};
  return s;
}

Sample failed(const std::string& id, int64_t repeat) {
  Sample s = sample(id, repeat, Outcome::kInvalid);
  s.error = "connection refused";
  s.finish_reason = "";
  return s;
}

TEST(SampleFile, WritesAndReadsBack) {
  const testing::TempFolder folder;
  const std::string path = folder.file("deep/er/s.jsonl");
  {
    SampleFile file = SampleFile::create(path, header());
    file.append(sample("q0", 0, Outcome::kRight));
    Sample refused = failed("q1", 1);
    refused.refused = true;
    refused.attempts = 3;
    file.append(refused);
  }
  std::vector<Sample> read;
  const SampleFileHeader back = read_samples(path, [&](Sample s) { read.push_back(std::move(s)); });
  EXPECT_EQ(first_difference(back, header()), "");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(json::dump(to_json(read[0])), json::dump(to_json(sample("q0", 0, Outcome::kRight))));
  EXPECT_TRUE(read[1].refused);
  EXPECT_EQ(read[1].attempts, 3);
  expect_says(error_of([&] { SampleFile::create(path, header()); }), {path.c_str(), "--resume"});
}

TEST(SampleFile, GoesOnBehindALineThatWasCutOff) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  {
    SampleFile file = SampleFile::create(path, header());
    file.append(sample("q0", 0, Outcome::kRight));
  }
  std::ofstream(path, std::ios::app) << R"({"id":"q1","repe)";
  EXPECT_EQ(read_earlier_samples(path).size(), 1u);
  {
    SampleFile file = SampleFile::resume(path, header());
    file.append(sample("q1", 0, Outcome::kWrong));
  }
  EXPECT_EQ(read_earlier_samples(path).size(), 2u);
}

// A disk with room for so many bytes more, as far as this process can tell.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

// A line for which there was no room does not spoil the next one, once there is room again.
TEST(SampleFile, AFullDiskLeavesWholeLines) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  const auto append_with_room = [&](SampleFile& file, uint64_t bytes) {
    const FileSizeLimit limit(std::filesystem::file_size(path) + bytes);
    expect_says(error_of([&] { file.append(sample("lost", 0, Outcome::kRight)); }),
                {"cannot be written", "--resume"});
  };
  {
    SampleFile file = SampleFile::create(path, header());
    file.append(sample("q0", 0, Outcome::kRight));
    append_with_room(file, 30);
    file.append(sample("q1", 0, Outcome::kWrong));
  }
  {
    std::ofstream(path, std::ios::app) << R"({"id":"q2","repe)";
    SampleFile file = SampleFile::resume(path, header());
    append_with_room(file, 0);
    append_with_room(file, 30);
    file.append(sample("q2", 0, Outcome::kWrong));
  }
  EXPECT_EQ(read_earlier_samples(path).size(), 3u);
}

TEST(SampleFile, AFullDiskLeavesNoFileWithoutAHeader) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  {
    const FileSizeLimit limit(10);
    expect_says(error_of([&] { SampleFile::create(path, header()); }), {"cannot be written"});
  }
  { const SampleFile file = SampleFile::create(path, header()); }
}

TEST(SampleFile, OneRunAtATime) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  const auto resume = [&] {
    return testing::error_of([&] { SampleFile::resume(path, header()); });
  };
  EXPECT_NE(resume().find("is not there"), std::string::npos);
  {
    const SampleFile running = SampleFile::create(path, header());
    EXPECT_NE(resume().find("another run is writing it"), std::string::npos);
  }
  SampleFile::resume(path, header());
}

TEST(SampleFile, RefusesToMixScoresOfTwoKinds) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  { const SampleFile file = SampleFile::create(path, header()); }
  auto refusal = [&](SampleFileHeader other) {
    return error_of([&] { SampleFile::resume(path, other); });
  };
  SampleFileHeader other = header();
  other.settings[0].second = 20;
  expect_says(refusal(other), {"\"max_tokens\""});
  other = header();
  other.settings.emplace_back("seed", 3);
  expect_says(refusal(other), {"\"seed\""});
  other = header();
  other.model = "n";
  expect_says(refusal(other), {"\"model\""});
  other = header();
  other.common_prefix = "";
  expect_says(refusal(other), {"\"common_prefix\""});
  expect_says(refusal(header(5)), {"\"num_questions\""});
  other = header();
  other.server = "http://elsewhere:2";
  { const SampleFile same_question = SampleFile::resume(path, other); }
}

TEST(SampleFile, NamesTheLineThatIsWrong) {
  const testing::TempFolder folder;
  auto refusal = [&](const std::string& content) {
    const std::string path = folder.write("s.jsonl", content);
    return error_of([&] { read_samples(path, [](const Sample&) {}); });
  };
  const std::string head = json::dump(to_json(header())) + "\n";
  expect_says(refusal(""), {"s.jsonl", "no samples file"});
  expect_says(refusal("{}\n"), {"s.jsonl:1", "format"});
  expect_says(refusal(head + "nonsense\n"), {"s.jsonl:2", "JSON"});
  expect_says(refusal(head + "{\"id\":3}\n"), {"s.jsonl:2", "\"id\""});
  json::Value bad = to_json(sample("q0", 0, Outcome::kRight));
  bad.set("outcome", "splendid");
  expect_says(refusal(head + json::dump(bad) + "\n"), {"s.jsonl:2", "splendid"});
}

// A question that failed and was asked again counts once, by its last sample.
TEST(SampleFile, RetriesDoNotCountTwice) {
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  {
    SampleFile file = SampleFile::create(path, header());
    file.append(failed("q0", 0));
    file.append(sample("q0", 0, Outcome::kRight));
    file.append(failed("q1", 0));
    file.append(sample("q0", 1, Outcome::kWrong));
  }
  const std::vector<Sample> kept = read_earlier_samples(path);
  ASSERT_EQ(kept.size(), 2u);  // q1 is asked again
  const Summary summary = summarize(kept);
  EXPECT_EQ(summary.num_right, 1);
  EXPECT_EQ(summary.num_wrong, 1);
  EXPECT_EQ(summary.score, 0.5);
  write_html_report(folder.file("s.html"), path, summary);
  const std::string page = read_file(folder.file("s.html"));
  size_t shown = 0;
  for (size_t at = 0; (at = page.find("<details class=\"s ", at)) != std::string::npos; ++at)
    ++shown;
  EXPECT_EQ(shown, 3u);
}

TEST(Summary, CountsEveryKindApart) {
  std::vector<Sample> samples = {sample("q0", 0, Outcome::kRight),
                                 sample("q0", 1, Outcome::kRight),
                                 sample("q1", 0, Outcome::kWrong),
                                 sample("q1", 1, Outcome::kRight),
                                 sample("q2", 0, Outcome::kInvalid),
                                 failed("q2", 1),
                                 failed("q3", 0)};
  samples[4].finish_reason = "length";
  samples[6].refused = true;
  samples[1].attempts = 2;
  const Summary s = summarize(samples);
  EXPECT_EQ(s.num_right, 3);
  EXPECT_EQ(s.num_wrong, 1);
  EXPECT_EQ(s.num_invalid, 1);
  EXPECT_EQ(s.num_refused, 1);
  EXPECT_EQ(s.num_failed, 1);
  EXPECT_EQ(s.num_truncated, 1);
  EXPECT_EQ(s.num_retried, 1);
  EXPECT_EQ(s.first_error, "connection refused");
  EXPECT_EQ(s.num_questions, 4);
  EXPECT_DOUBLE_EQ(s.score, 3.0 / 6);
  EXPECT_DOUBLE_EQ(s.invalid_share, 1.0 / 6);
  EXPECT_EQ(s.repeat_scores, (std::vector<double>{0.25, 1.0}));
  EXPECT_NEAR(*s.repeats_error, 0.375, 1e-12);
  ASSERT_EQ(s.categories.size(), 1u);
  EXPECT_EQ(s.categories[0].num_samples, 6);
  EXPECT_DOUBLE_EQ(*mean_pass_at(samples, 1), (1 + 0.5 + 0 + 0) / 4);
  EXPECT_DOUBLE_EQ(*mean_pass_at(samples, 2), 1);
  EXPECT_FALSE(mean_pass_at(samples, 3));
  EXPECT_FALSE(summarize({}).questions_error);
}

TEST(HtmlReport, EscapesWhatModelsWrite) {
  EXPECT_EQ(text::escape_markup("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(text::escape_markup(std::string("a\0b\x1b\n\t", 6)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\n\t");
  EXPECT_EQ(text::escape_markup("\xFF"), "\xEF\xBF\xBD");
  const testing::TempFolder folder;
  const std::string path = folder.file("s.jsonl");
  Sample evil = sample("q\"><img>", 0, Outcome::kRight);
  evil.category = "\" onclick=\"x";
  evil.response = "</pre></details><script>alert(1)</script>";
  evil.reasoning = std::string(20000, 'r');
  SampleFileHeader head = header();
  head.model = "</title><script>";
  {
    SampleFile file = SampleFile::create(path, head);
    file.append(evil);
  }
  write_html_report(folder.file("s.html"), path, summarize(std::vector<Sample>{evil}));
  const std::string page = read_file(folder.file("s.html"));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("</title><script>"), std::string::npos);
  EXPECT_EQ(page.find("<img>"), std::string::npos);
  EXPECT_EQ(page.find("\" onclick"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(page.find("bytes left out"), std::string::npos);
  EXPECT_EQ(page.find("http://www"), std::string::npos);  // nothing from elsewhere
  EXPECT_NE(page.find("name=\"outcome\""), std::string::npos);
  EXPECT_LT(page.size(), 25000u);
}

class Compare : public ::testing::Test {
 protected:
  // Question i is right where the string has '1' at i, unanswered where it has '-'.
  std::string write(const std::string& name, const std::string& outcomes, int64_t repeats = 1) {
    const std::string path = folder_.file(name);
    SampleFileHeader head = header(static_cast<int64_t>(outcomes.size()));
    head.repeats = repeats;
    SampleFile file = SampleFile::create(path, head);
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const std::string id = "q" + std::to_string(i);
      file.append(outcomes[i] == '-'
                      ? failed(id, 0)
                      : sample(id, 0, outcomes[i] == '1' ? Outcome::kRight : Outcome::kWrong));
    }
    return path;
  }

  testing::TempFolder folder_;
};

TEST_F(Compare, ALossThatShows) {
  const std::string all(60, '1');
  const Comparison c =
      compare_samples(write("a", all), write("b", std::string(15, '0') + std::string(45, '1')));
  EXPECT_DOUBLE_EQ(c.score_a, 1);
  EXPECT_DOUBLE_EQ(c.score_b, 0.75);
  EXPECT_DOUBLE_EQ(c.difference.mean, -0.25);
  EXPECT_EQ(c.num_better_a, 15);
  EXPECT_LT(c.sign_test_p, 1e-4);
  expect_says(conclusion(c), {"B is worse than A by 25.00 points", "60 questions"});
}

TEST_F(Compare, ALossThatDoesNot) {
  const Comparison c = compare_samples(write("a", "1111011101"), write("b", "1101111101"));
  EXPECT_EQ(c.num_better_a, 1);
  EXPECT_EQ(c.num_better_b, 1);
  expect_says(conclusion(c), {"No difference", "would mostly go unseen"});
  const Comparison same = compare_samples(write("c", "1101"), write("d", "1101"));
  expect_says(conclusion(same), {"same on every one of the 4 questions"});
}

TEST_F(Compare, LeavesOutWhatOneSideDidNotAnswer) {
  const Comparison c = compare_samples(write("a", "11-1"), write("b", "1101"));
  EXPECT_EQ(c.difference.num_pairs, 3);
  EXPECT_EQ(c.num_left_out, 1);
  EXPECT_NE(comparison_text(c).find("Left out: 1"), std::string::npos);
  expect_says(error_of([&] { compare_samples(write("c", "1-"), write("d", "11")); }),
              {"at least 2"});
}

TEST_F(Compare, RefusesOtherQuestions) {
  const std::string a = write("a", "11");
  SampleFileHeader head = header(2);
  const std::string b = folder_.file("b");
  {
    SampleFile file = SampleFile::create(b, head);
    Sample other = sample("q0", 0, Outcome::kRight);
    other.label = "B";
    file.append(other);
    file.append(sample("q1", 0, Outcome::kRight));
  }
  expect_says(error_of([&] { compare_samples(a, b); }), {"\"q0\"", "another question"});
  head.task = "mmlu";
  const std::string c = folder_.file("c");
  { const SampleFile file = SampleFile::create(c, head); }
  expect_says(error_of([&] { compare_samples(a, c); }), {"gpqa", "mmlu"});
}

}  // namespace
}  // namespace winnow::eval
