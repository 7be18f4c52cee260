#include "eval/records.h"

#include <gtest/gtest.h>

#include "eval/csv.h"
#include "testing/errors.h"
#include "testing/temp_folder.h"

namespace winnow::eval {
namespace {

using Fields = std::vector<std::string>;

std::vector<Fields> parse(std::string_view text) {
  const auto records = parse_csv(text);
  EXPECT_TRUE(records.ok());
  std::vector<Fields> fields;
  for (const CsvRecord& record : records.value()) fields.push_back(record.fields);
  return fields;
}

TEST(Csv, QuotesCommasAndLineEndsInFields) {
  EXPECT_EQ(parse("a,b\n1,2\n"), (std::vector<Fields>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parse("\"x, y\",\"say \"\"hi\"\"\"\r\n\"two\nlines\","),
            (std::vector<Fields>{{"x, y", "say \"hi\""}, {"two\nlines", ""}}));
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "a\n\n\"\"\n,\nb"),
            (std::vector<Fields>{{"a"}, {""}, {"", ""}, {"b"}}));
  EXPECT_EQ(parse("\"a\"b,c\"d\""), (std::vector<Fields>{{"ab", "c\"d\""}}));
  EXPECT_EQ(parse("a\rb"), (std::vector<Fields>{{"a"}, {"b"}}));
  EXPECT_TRUE(parse("").empty());
}

TEST(Csv, CountsLinesAcrossFields) {
  const auto records = parse_csv("a\n\"1\n2\n3\"\nb");
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records.value()[1].line, 2);
  EXPECT_EQ(records.value()[2].line, 5);
  const auto open = parse_csv("a\nb,\"c\nd");
  ASSERT_FALSE(open.ok());
  testing::expect_says(open.status().message, {"line 2", "never closed"});
}

TEST(Records, NameFileLineAndField) {
  const auto rows = csv_records("q.csv", "Question,Answer\n\"1\n+1\",2\n3,4\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].text("Question"), "1\n+1");
  EXPECT_EQ(rows[1].where(), "q.csv:4");
  testing::expect_says(testing::error_of([&] { rows[1].text("Level"); }), {"q.csv:4", "Level"});
  testing::expect_says(testing::error_of([] { csv_records("q.csv", "a,b\n1\n"); }),
                       {"q.csv:2", "1 fields", "2 columns"});
  testing::expect_says(testing::error_of([] { csv_records("q.csv", "a,a\n"); }), {"\"a\""});
  testing::expect_says(testing::error_of([] { csv_records("q.csv", ""); }), {"columns"});
}

TEST(Records, JsonLinesAndArrays) {
  const auto lines = json_records("t.jsonl", "{\"a\":\"x\",\"n\":3}\n\n{\"a\":null}\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text("n"), "3");
  EXPECT_EQ(lines[1].text_or_empty("a"), "");
  EXPECT_EQ(lines[1].where(), "t.jsonl:3");
  testing::expect_says(testing::error_of([&] { lines[1].text("a"); }), {"t.jsonl:3", "\"a\""});
  EXPECT_EQ(json_records("t.json", " [{\"a\":1},{\"a\":2}]")[1].text("a"), "2");
  testing::expect_says(testing::error_of([] { json_records("t.jsonl", "{}\n[1]\n"); }),
                       {"t.jsonl:2", "object"});
  testing::expect_says(testing::error_of([] { json_records("t.jsonl", "{}\n{\n"); }),
                       {"t.jsonl:2", "JSON"});
  testing::expect_says(testing::error_of([] { json_records("t.json", "[{},3]"); }), {"item 1"});
}

TEST(Records, TextIsUtf8) {
  EXPECT_NE(testing::error_of([] {
              csv_records("a.csv", "Question\ncaf\xE9\n");
            }).find("a.csv:2: \"Question\" is not valid UTF-8"),
            std::string::npos);
  const testing::TempFolder folder;
  const std::string path = folder.write("bom.jsonl", "\xEF\xBB\xBF{\"a\":\"b\"}\n");
  EXPECT_EQ(read_records(path).at(0).text("a"), "b");
}

TEST(Records, ReadByEnding) {
  const testing::TempFolder folder;
  EXPECT_EQ(read_records(folder.write("a.csv", "x\n1\n"))[0].text("x"), "1");
  EXPECT_EQ(read_records(folder.write("a.jsonl", "{\"x\":1}"))[0].text("x"), "1");
  testing::expect_says(testing::error_of([&] { read_records(folder.write("a.txt", "")); }),
                       {"a.txt", ".csv"});
  testing::expect_says(testing::error_of([] { read_records("/nowhere.csv"); }), {"/nowhere.csv"});
}

}  // namespace
}  // namespace winnow::eval
