// Events of every server into records: what counts as a token, a first token, a failure.
#include "bench/event_reader.h"

#include <gtest/gtest.h>

#include "bench/http_message.h"

namespace winnow::bench {
namespace {

RequestRecord read(EventReaderOptions options, const std::vector<std::string>& events) {
  RequestRecord record;
  EventReader reader(options, record);
  for (size_t i = 0; i < events.size(); ++i) {
    reader.on_event(events[i], static_cast<int64_t>(i + 1) * 1000);
  }
  reader.on_stream_end();
  return record;
}

RequestRecord read_native(const std::vector<std::string>& events) { return read({}, events); }

RequestRecord read_chat(const std::vector<std::string>& events) {
  return read({.kind = ApiKind::kChat}, events);
}

std::string native(std::string_view text, int tokens, std::string_view more = "") {
  return fmt::format(
      R"({{"text":"{}","meta_info":{{"prompt_tokens":9,"cached_tokens":3,"completion_tokens":{},)"
      R"("finish_reason":null{}}}}})",
      text, tokens, more);
}

std::string chat(std::string_view delta, std::string_view more = "") {
  return fmt::format(R"({{"object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{{}}},)"
                     R"("finish_reason":null}}]{}}})",
                     delta, more);
}

TEST(EventReader, NativeCumulative) {
  const RequestRecord r =
      read_native({native("a", 1), native("a", 1), native("abc", 3),
                   R"({"text":"abc","output_ids":[1],"meta_info":{"completion_tokens":4,
           "finish_reason":{"type":"length","length":4},"spec_accept_length":1.5}})",
                   "[DONE]"});
  EXPECT_EQ(r.error, "");
  ASSERT_EQ(r.events.size(), 3u);  // the one without a new token moves nothing
  EXPECT_EQ(r.events[0].received_ns, 1000);
  EXPECT_EQ(r.events[1].num_tokens, 2);
  EXPECT_EQ(r.events[2].received_ns, 4000);
  EXPECT_EQ(r.text, "abc");
  EXPECT_EQ(r.completion_tokens, 4);
  EXPECT_EQ(r.served_prompt_tokens, 9);
  EXPECT_EQ(r.cached_tokens, 3);
  EXPECT_EQ(r.finish_reason, "length");
  EXPECT_EQ(r.accept_length, 1.5);
  EXPECT_EQ(r.last_event_ns, 5000);  // [DONE]
}

// A first token that shows nothing is a token; the first text comes later.
TEST(EventReader, FirstTokenAndFirstText) {
  const RequestRecord r = read_native({native("", 1), native("", 2), native("x", 3), "[DONE]"});
  EXPECT_EQ(r.events.front().received_ns, 1000);
  EXPECT_EQ(r.first_text_ns, 3000);
}

TEST(EventReader, NativeIncremental) {
  const RequestRecord r = read({.kind = ApiKind::kNative, .incremental_text = true},
                               {native(" ", 1), native(" ", 2), native("b", 3), "[DONE]"});
  EXPECT_EQ(r.text, "  b");
  EXPECT_EQ(r.events.size(), 3u);
}

// B118: TTFT is the first delta of any kind that is not empty; totals are the server's.
TEST(EventReader, ReasoningOnly) {
  const RequestRecord r =
      read_chat({chat(R"("role":"assistant","content":"")"), chat(R"("content":null)"),
                 chat(R"("content":null,"reasoning_content":"hm")"), chat(R"("reasoning":"so")"),
                 R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
                 R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,
           "prompt_tokens_details":{"cached_tokens":2}}})",
                 "[DONE]"});
  EXPECT_EQ(r.error, "");
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_EQ(r.events[0].received_ns, 3000);
  EXPECT_EQ(r.first_text_ns, 3000);
  EXPECT_EQ(r.text, "hmso");
  EXPECT_EQ(r.completion_tokens, 6);
  EXPECT_EQ(r.cached_tokens, 2);
}

TEST(EventReader, ToolsOnly) {
  const auto tool = [](std::string_view function) {
    return chat(fmt::format(R"("tool_calls":[{{"index":0,"id":"c","function":{}}}])", function));
  };
  const RequestRecord r = read_chat(
      {chat(R"("role":"assistant","content":"")"), tool(R"({"name":"f","arguments":""})"),
       tool(R"({"arguments":"{\"a\""})"), tool(R"({"arguments":""})"),
       R"({"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":null})",
       R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6400}})", "[DONE]"});
  EXPECT_EQ(r.error, "");
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_EQ(r.events[0].received_ns, 2000);
  EXPECT_EQ(r.first_text_ns, 0);
  EXPECT_EQ(r.completion_tokens, 6400);
  EXPECT_EQ(r.finish_reason, "tool_calls");
}

// Steps whose text is held back still count where the server counts as it streams.
TEST(EventReader, ContinuousUsage) {
  const auto usage = [](int n) {
    return fmt::format(R"(,"usage":{{"prompt_tokens":5,"completion_tokens":{}}})", n);
  };
  const RequestRecord r = read_chat(
      {chat(R"("role":"assistant","content":"")", usage(0)), chat(R"("content":"a")", usage(1)),
       chat(R"("content":"")", usage(3)), chat(R"("content":"bcd")", usage(6)),
       R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}})", "[DONE]"});
  ASSERT_EQ(r.events.size(), 3u);
  EXPECT_EQ(r.events[0].num_tokens, 1);
  EXPECT_EQ(r.events[1].num_tokens, 2);
  EXPECT_EQ(r.events[2].num_tokens, 3);
}

// B116, B119: chunks whose text encodes to nothing, or to fewer tokens.
TEST(EventReader, BlanksAndHalfCharacters) {
  const RequestRecord r =
      read({.kind = ApiKind::kCompletions},
           {R"({"choices":[{"text":""}]})", R"({"choices":[{"text":" "}]})",
            R"({"choices":[{"text":"<think>"}]})", R"({"choices":[{"text":"a b"}]})",
            R"({"choices":[{"text":"\ud83d\ude00","finish_reason":"length"}],"usage":null})",
            R"({"choices":[],"usage":{"completion_tokens":100,"prompt_tokens":1}})", "[DONE]"});
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.events.size(), 4u);
  EXPECT_EQ(r.text, " <think>a b\xF0\x9F\x98\x80");
  EXPECT_EQ(r.num_output_tokens(), 100);
}

// An answer that brings all its tokens at the end has its first token there.
TEST(EventReader, UsageWithoutAnyDelta) {
  const RequestRecord r =
      read_chat({chat(R"("role":"assistant","content":"")"),
                 R"({"choices":[],"usage":{"completion_tokens":8,"prompt_tokens":1}})", "[DONE]"});
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].num_tokens, 8);
}

// serving.md 5.8: a stream with an error in it is a failure, whatever its HTTP status.
TEST(EventReader, Failures) {
  EXPECT_EQ(read_native({R"({"error":{"message":"too long"}})", "[DONE]"}).error, "too long");
  EXPECT_EQ(read_native({native("a", 1), R"({"error":{"message":"dead engine"}})", "[DONE]"}).error,
            "dead engine");
  EXPECT_EQ(read_chat({R"({"object":"error","message":"no"})"}).error, "no");
  EXPECT_EQ(read_chat({chat(R"("content":"a")", R"(,"error":null)"), "[DONE]"}).error, "");
  EXPECT_EQ(read_native({R"({"text":"a","meta_info":{"completion_tokens":1,
      "finish_reason":{"type":"abort","message":"cut off"}}})",
                         "[DONE]"})
                .error,
            "cut off");
  for (const char* bad : {"{", "[]", "1", "", "nonsense", R"({"meta_info":7})"}) {
    EXPECT_NE(read_native({bad, "[DONE]"}).error.find("no valid JSON"), std::string::npos) << bad;
  }
  EXPECT_NE(read_native({native("a", 1)}).error.find("without [DONE]"), std::string::npos);
  EXPECT_NE(read_native({}).error.find("without [DONE]"), std::string::npos);
}

// Figures are kept a token: a count without a limit would fill the memory.
TEST(EventReader, CountsThatNoAnswerHas) {
  EXPECT_NE(
      read_native({native("a", 1),
                   R"({"text":"ab","meta_info":{"completion_tokens":9000000000000}})", "[DONE]"})
          .error.find("counts 9000000000000 tokens"),
      std::string::npos);
  RequestRecord whole;
  EventReader(EventReaderOptions{}, whole)
      .on_body(200, R"({"text":"hi","meta_info":{"completion_tokens":16777217}})", 5000);
  EXPECT_NE(whole.error.find("at most 16777216"), std::string::npos);
  EXPECT_TRUE(whole.events.empty());
}

// What a server says goes to terminals and into JSON lines.
TEST(EventReader, ErrorsArePrintable) {
  const std::string bytes("\x1b[31m\xff\0\n", 8);
  const std::string said = read_native({bytes.c_str(), "[DONE]"}).error;
  EXPECT_TRUE(json::parse(json::dump(said)).ok());
  EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  for (const std::string& text : {describe_failure(500, bytes), printable(bytes)}) {
    EXPECT_TRUE(json::parse(json::dump(text)).ok());
    EXPECT_EQ(text.find_first_of(std::string("\x1b\n\0", 3)), std::string::npos) << text;
  }
  EXPECT_LE(printable(std::string(100000, 'x')).size(), 300u);
  EXPECT_EQ(describe_failure(200, ""), "an empty answer");
  EXPECT_EQ(describe_failure(302, "gone"), "HTTP 302, and redirects are not followed: gone");
}

TEST(EventReader, AnswersWithoutAStream) {
  RequestRecord ok;
  EventReader(EventReaderOptions{}, ok)
      .on_body(200, R"({"text":"hi","meta_info":{"completion_tokens":2,"prompt_tokens":3}})", 5000);
  EXPECT_EQ(ok.error, "");
  EXPECT_EQ(ok.last_event_ns, 5000);
  EXPECT_EQ(ok.completion_tokens, 2);
  ASSERT_EQ(ok.events.size(), 1u);
  RequestRecord refused;
  EventReader(EventReaderOptions{}, refused).on_body(400, R"({"error":{"message":"no"}})", 5000);
  EXPECT_EQ(refused.error, "HTTP 400: no");
}

}  // namespace
}  // namespace winnow::bench
