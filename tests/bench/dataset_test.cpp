// Prompts: lengths and orders of the Python tool's seeds, and texts that encode to what they say.
#include "bench/dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/serving_run.h"
#include "testing/errors.h"
#include "testing/temp_folder.h"
#include "testing/tiny_tokenizer.h"

namespace winnow::bench {
namespace {

class Dataset : public ::testing::Test {
 protected:
  std::vector<PromptRow> load(uint32_t seed = 42) {
    random_ = std::make_unique<DatasetRandom>(seed);
    return load_dataset(options_, {.tokenizer = *tokenizer_,
                                   .num_prefix_tokens = prefix_,
                                   .random = *random_,
                                   .note = [&](std::string text) { notes_ += text + "\n"; }});
  }

  int64_t count(const std::string& text) const {
    return static_cast<int64_t>(tokenizer_->encode(text, text::ControlTokens::kPlain).size());
  }

  std::string sharegpt(int count) const {
    json::Array rows;
    for (int i = 0; i < count; ++i) {
      const auto turn = [&](const std::string& text) {
        return json::Value(json::Object{{"from", "x"}, {"value", text}});
      };
      rows.push_back(json::Object{
          {"conversations", json::Array{turn(std::string(static_cast<size_t>(i + 2), 'q')),
                                        turn(std::string(static_cast<size_t>(2 * i + 2), 'a'))}}});
    }
    rows.push_back(json::Object{{"conversations", json::Array{}}});
    return json::dump(rows);
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ = testing::make_byte_tokenizer();
  testing::TempFolder folder_;
  DatasetOptions options_{.name = "random", .num_prompts = 6};
  int64_t prefix_ = 0;
  std::unique_ptr<DatasetRandom> random_;
  std::string notes_;
};

std::vector<int64_t> inputs(const std::vector<PromptRow>& rows) {
  std::vector<int64_t> out;
  for (const PromptRow& row : rows) out.push_back(row.prompt_len);
  return out;
}

std::vector<int64_t> outputs(const std::vector<PromptRow>& rows) {
  std::vector<int64_t> out;
  for (const PromptRow& row : rows) out.push_back(row.output_len);
  return out;
}

// serving.md appendix A.
TEST_F(Dataset, LengthsOfTheSeeds) {
  EXPECT_EQ(inputs(load()), (std::vector<int64_t>{103, 436, 861, 271, 107, 72}));
  EXPECT_EQ(outputs(load()), (std::vector<int64_t>{701, 21, 615, 122, 467, 215}));
  EXPECT_EQ(inputs(load(1)), (std::vector<int64_t>{38, 236, 909, 73, 768, 906}));
  options_.random_range_ratio = 0.5;
  EXPECT_EQ(inputs(load()), (std::vector<int64_t>{614, 947, 782, 618, 583, 532}));
  options_.random_range_ratio = 1;
  EXPECT_EQ(inputs(load()), std::vector<int64_t>(6, 1024));
  EXPECT_EQ(random_->numpy.next(), 1608637542u);
}

TEST(Arrivals, PoissonGapsOfTheSeed) {
  NumpyRandom random(42);
  const auto at = poisson_arrivals(random, 8, 5);
  const double gaps[] = {0.058658511, 0.376265179, 0.164593212, 0.114117819};
  EXPECT_EQ(at[0], 0);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(at[i + 1] - at[i], gaps[i], 5e-10);
  EXPECT_EQ(poisson_arrivals(random, 0, 3), (std::vector<double>{0, 0, 0}));
}

TEST_F(Dataset, RandomTextEncodesToItsLength) {
  options_.random_input_len = 50;
  options_.random_range_ratio = 1;
  prefix_ = 2;
  const auto rows = load();
  std::set<std::string> beginnings;
  for (const PromptRow& row : rows) {
    EXPECT_EQ(row.prompt_len, 50);
    EXPECT_EQ(count(row.text), 48);
    beginnings.insert(row.text.substr(0, 8));
  }
  EXPECT_EQ(beginnings.size(), rows.size());
  EXPECT_NE(notes_.find("random words"), std::string::npos);
  EXPECT_EQ(load()[3].text, rows[3].text);
  // B121: another seed changes the whole prompt.
  EXPECT_NE(load(43)[3].text.substr(0, 8), rows[3].text.substr(0, 8));
}

TEST_F(Dataset, RandomFromAFileCutsAndRepeats) {
  options_.path = folder_.write("sharegpt.json", sharegpt(8));
  options_.random_input_len = 5;
  options_.random_range_ratio = 1;
  const auto rows = load();
  ASSERT_EQ(rows.size(), 6u);
  for (const PromptRow& row : rows) EXPECT_EQ(row.text, "qqqqq");
  options_.num_prompts = 20;
  EXPECT_EQ(load().size(), 8u);
  EXPECT_NE(notes_.find("8 of 20"), std::string::npos);
}

TEST_F(Dataset, RandomIdsAreConsecutive) {
  options_.name = "random-ids";
  options_.as_ids = true;
  options_.random_input_len = 4;
  options_.random_range_ratio = 1;
  const int32_t vocab = base_vocab_size(*tokenizer_);
  EXPECT_EQ(vocab, 256);
  NumpyRandom numpy(42);
  const auto rows = load();
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t offset = numpy.randint(0, vocab);
    ASSERT_EQ(rows[i].ids.size(), 4u);
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(rows[i].ids[j], (offset + static_cast<int64_t>(i + j)) % vocab);
    }
  }
}

// Offsets for a vocabulary of 151,552 (appendix A).
TEST(RandomIds, OffsetsOfTheSeed) {
  NumpyRandom numpy(42);
  random_lengths(numpy, 1024, 1, 4);
  for (const int64_t offset : {121958, 146867, 131932, 103694}) {
    EXPECT_EQ(numpy.randint(0, 151552), offset);
  }
}

TEST_F(Dataset, ConversationsInTheSeedsOrder) {
  options_.name = "sharegpt";
  options_.num_prompts = 10;
  options_.path = folder_.write("sharegpt.json", sharegpt(10));
  // random.seed(42); random.shuffle(list(range(10)))
  const auto rows = load();
  const std::vector<int64_t> order = {7, 3, 2, 8, 5, 6, 9, 4, 0, 1};
  ASSERT_EQ(rows.size(), order.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].prompt_len, order[i] + 2);
    EXPECT_EQ(rows[i].output_len, 2 * order[i] + 2);
  }
  options_.sharegpt_output_len = 4;
  options_.sharegpt_context_len = 10;  // prompts of 6 at most
  EXPECT_EQ(inputs(load()), (std::vector<int64_t>{5, 4, 6, 2, 3}));
  options_.sharegpt_output_len = 3;
  EXPECT_NE(testing::error_of([&] { load(); }).find("at least 4"), std::string::npos);
}

TEST_F(Dataset, CustomLinesLeaveOutWhatIsBroken) {
  options_.name = "custom";
  options_.prompt_suffix = " please ";
  options_.path =
      folder_.write("custom.jsonl",
                    "{\"conversation\":[{\"content\":\"Hi Assistant:\"},{\"content\":\"Hello\"}]}\n"
                    "broken\n\n{\"conversations\":[{\"value\":\"one turn\"}]}\n");
  const auto rows = load();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].text, "Hi  please Assistant:");
  EXPECT_EQ(rows[0].output_len, 5);
}

TEST_F(Dataset, SharedPrefixes) {
  options_.name = "generated-shared-prefix";
  options_.gsp_num_groups = 2;
  options_.gsp_prompts_per_group = 3;
  options_.gsp_system_prompt_len = 40;
  options_.gsp_question_len = 10;
  options_.gsp_output_len = 7;
  options_.gsp_ordered = true;
  const auto rows = load();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].text.substr(0, 20), rows[2].text.substr(0, 20));
  EXPECT_NE(rows[0].text.substr(0, 20), rows[3].text.substr(0, 20));
  for (const PromptRow& row : rows) EXPECT_EQ(row.output_len, 7);
}

// Zipf's law moves prompts between the groups and leaves the questions as they are.
TEST_F(Dataset, SharedPrefixesByZipfsLaw) {
  options_.name = "generated-shared-prefix";
  options_.gsp_num_groups = 8;
  options_.gsp_prompts_per_group = 3;
  options_.gsp_system_prompt_len = 40;
  options_.gsp_question_len = 10;
  options_.gsp_ordered = true;
  const auto uniform = load();
  options_.gsp_zipf_alpha = 1.2;
  const auto zipf = load();
  ASSERT_EQ(zipf.size(), 24u);
  const auto halves = [](const PromptRow& row) {
    const size_t middle = row.text.find("\n\n");
    return std::pair(row.text.substr(0, middle), row.text.substr(middle));
  };
  // NumpyGenerator(42).choice() of eight groups.
  const size_t groups[] = {3, 1, 4, 2, 0, 7, 3, 3, 0, 1, 0, 6, 2, 4, 1, 0, 1, 0, 4, 2, 3, 0, 7, 5};
  for (size_t i = 0; i < zipf.size(); ++i) {
    EXPECT_EQ(halves(zipf[i]).first, halves(uniform[3 * groups[i]]).first) << i;
    EXPECT_EQ(halves(zipf[i]).second, halves(uniform[i]).second) << i;
  }
}

TEST_F(Dataset, SharedPrefixesOfConversations) {
  options_.name = "generated-shared-prefix";
  options_.gsp_num_groups = 2;
  options_.gsp_prompts_per_group = 2;
  options_.gsp_system_prompt_len = 40;
  options_.gsp_question_len = 10;
  options_.gsp_num_turns = 3;
  const auto rows = load();
  ASSERT_EQ(rows.size(), 4u);
  for (const PromptRow& row : rows) {
    ASSERT_EQ(row.later_turns.size(), 2u);
    EXPECT_NE(row.later_turns[0], row.later_turns[1]);
    EXPECT_GT(row.later_lens[0], 0);
    EXPECT_EQ(row.later_turns[0].find("\n\n" + row.later_turns[1]), std::string::npos);
  }
}

TEST_F(Dataset, IdsHaveTheExactLength) {
  options_.name = "generated-shared-prefix";
  options_.gsp_num_groups = 2;
  options_.gsp_prompts_per_group = 2;
  options_.gsp_system_prompt_len = 40;
  options_.gsp_question_len = 10;
  options_.as_ids = true;
  for (const PromptRow& row : load()) {
    EXPECT_EQ(row.ids.size(), 50u);
    EXPECT_EQ(row.prompt_len, 50);
  }
  options_.name = "sharegpt";
  options_.path = folder_.write("ids.json", sharegpt(4));
  prefix_ = 2;
  for (const PromptRow& row : load()) {
    EXPECT_EQ(static_cast<int64_t>(row.ids.size()), row.prompt_len);
    EXPECT_EQ(row.ids.size(), row.text.size());  // a token a byte
  }
}

TEST_F(Dataset, TraceSharesWhatItsHashesShare) {
  options_.name = "trace";
  options_.trace_slowdown = 2;
  options_.path = folder_.write(
      "trace.jsonl", R"({"timestamp":3000,"input_length":600,"output_length":5,"hash_ids":[7,8]})"
                     "\n"
                     R"({"timestamp":1000,"input_length":520,"output_length":4,"hash_ids":[7,9]})"
                     "\n"
                     R"({"timestamp":2000,"output_length":3,"hash_ids":[1]})"
                     "\n");
  const auto rows = load();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(inputs(rows), (std::vector<int64_t>{520, 512, 600}));
  EXPECT_EQ(outputs(rows), (std::vector<int64_t>{4, 3, 5}));
  EXPECT_EQ(rows[2].arrival_s, 4);
  EXPECT_EQ(rows[0].text.substr(0, 512), rows[2].text.substr(0, 512));
  EXPECT_NE(rows[0].text.substr(512), rows[2].text.substr(512, 8));
  options_.path = folder_.write("bad.jsonl", "{\"timestamp\":1}\n");
  EXPECT_NE(testing::error_of([&] { load(); }).find("bad.jsonl:1"), std::string::npos);
}

TEST_F(Dataset, FilesThatAreNone) {
  const auto says = [&](const char* name, const std::string& path, const char* words) {
    options_.name = name;
    options_.path = path;
    const std::string said = testing::error_of([&] { load(); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  for (const char* name : {"sharegpt", "custom", "trace", "random"}) {
    says(name, folder_.path(), "--dataset-path");
    says(name, folder_.file("nowhere"), "No such file");
  }
  const auto line = [&](const char* text) { return folder_.write("t.jsonl", text); };
  says("trace", line(R"({"timestamp":"a"})"), R"(t.jsonl:1: "timestamp" must be a number)");
  says("trace", line(R"({"timestamp":1e308,"output_length":1})"), "\"timestamp\"");
  says("trace", line(R"({"timestamp":1,"output_length":1e300,"input_length":5})"),
       "\"output_length\" must be a number from 0 to 16777216");
  says("trace", line(R"({"timestamp":1,"output_length":3,"input_length":99999999999})"),
       "\"input_length\" must be a number from 1 to 16777216");
  says("trace", line(R"({"timestamp":1,"output_length":3})"), "\"input_length\"");
  std::string many;
  for (int i = 0; i < 65; ++i) {
    many += R"({"timestamp":1,"output_length":3,"input_length":16777216})"
            "\n";
  }
  options_.num_prompts = 100;
  says("trace", line(many.c_str()), "t.jsonl:65: more than 1073741824 prompt tokens");
  options_.path = line(
      "\xEF\xBB\xBF"
      R"({"timestamp":1,"output_length":3,"hash_ids":[-9223372036854775808]})");
  EXPECT_EQ(load().size(), 1u);
}

TEST_F(Dataset, UnknownNames) {
  options_.name = "mmmu";
  EXPECT_NE(testing::error_of([&] { load(); }).find("generated-shared-prefix"), std::string::npos);
}

}  // namespace
}  // namespace winnow::bench
