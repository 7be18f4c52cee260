// Events out of bytes cut anywhere.
#include "bench/sse_parser.h"

#include <gtest/gtest.h>

#include <vector>

namespace winnow::bench {
namespace {

std::vector<std::string> parse(std::string_view bytes, size_t piece, size_t limit = 1 << 20) {
  SseParser parser(limit);
  std::vector<std::string> events;
  const auto take = [&](std::string_view data) { events.emplace_back(data); };
  for (size_t at = 0; at < bytes.size(); at += piece) {
    if (!parser.feed(bytes.substr(at, piece), take)) events.emplace_back("too large");
  }
  parser.finish(take);
  return events;
}

TEST(SseParser, EveryCutGivesTheSameEvents) {
  const std::string_view bytes =
      ": keep-alive\n\n"
      "data: {\"a\":1}\n\n"
      "event: error\nid: 7\ndata:no space\r\n\r\n"
      "data: two\ndata:  lines\n\n\n\n"
      "data\n\n"
      "database: 1\n\n"
      "data: old mac\r\rretry: 3\r"
      "data: [DONE]\n\n";
  const std::vector<std::string> expected = {"{\"a\":1}", "no space", "two\n lines",
                                             "",          "old mac",  "[DONE]"};
  for (size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(parse(bytes, piece), expected);
}

TEST(SseParser, TheLastEventMayLackItsBlankLine) {
  EXPECT_EQ(parse("data: a\n\ndata: b\n", 3), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse("data: a\n\ndata: b", 100), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parse("", 1).empty());
}

TEST(SseParser, StopsAtTheLimit) {
  const auto events = parse("data: " + std::string(100, 'x') + "\n\ndata: y\n\n", 1000, 50);
  EXPECT_EQ(events.back(), "too large");
  EXPECT_EQ(parse("data: " + std::string(100, 'x'), 7, 50).back(), "too large");
}

}  // namespace
}  // namespace winnow::bench
