// The clients against a server that answers by script: framing, failures, many at once.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "bench/answer_parser.h"
#include "bench/client_connection.h"
#include "bench/completion_client.h"
#include "bench/http_client.h"
#include "bench/stream_client.h"
#include "testing/stub_server.h"

namespace winnow::bench {
namespace {

using testing::json_answer;
using testing::sse_answer;
using testing::StubAnswer;
using testing::StubRequest;
using testing::StubServer;

Url url_of(const StubServer& server) { return parse_url(server.url()).value(); }

TEST(Url, Forms) {
  const Url url = parse_url("http://localhost:30000/base/").value();
  EXPECT_EQ(url.host, "localhost");
  EXPECT_EQ(url.port, 30000);
  EXPECT_EQ(url.base, "/base");
  EXPECT_EQ(parse_url("http://example").value().port, 80);
  const Url six = parse_url("http://[::1]:8000").value();
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.text(), "http://[::1]:8000");
  for (const char* bad : {"", "localhost:1", "https://a", "http://", "http://a:b", "http://a:0",
                          "http://a:70000", "http://a b", "http://[::1", "http://[::1]x"}) {
    EXPECT_FALSE(parse_url(bad).ok()) << bad;
  }
}

TEST(HttpClient, KeepsItsConnection) {
  StubServer server([](const StubRequest& request) {
    return json_answer(request.method + request.target + request.body);
  });
  HttpClient client(url_of(server), {{"X-Key", "1"}});
  EXPECT_EQ(client.get("/a?b=c", 10).value().body, "GET/a?b=c");
  EXPECT_EQ(client.post_json("/b", "{}", 10).value().body, "POST/b{}");
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpClient, OpensAnotherConnectionWhereTheServerClosedOne) {
  StubServer server([](const StubRequest& request) {
    StubAnswer answer = json_answer(request.body);
    answer.close = true;  // without saying so
    return answer;
  });
  HttpClient client(url_of(server));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.post_json("/", std::to_string(i), 10).value().body, std::to_string(i));
  }
  EXPECT_EQ(server.num_connections(), 20);
}

TEST(HttpClient, SaysWhyThereIsNoAnswer) {
  StubServer server([](const StubRequest& request) -> StubAnswer {
    if (request.target == "/stall") return {.steps = {}, .close = false, .stall = true};
    if (request.target == "/garbage") return {.steps = {{"no http at all\r\n\r\n"}}, .close = true};
    if (request.target == "/end") return {.steps = {}, .close = true};
    return {.steps = {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"}}, .close = true};
  });
  HttpClient client(url_of(server));
  const auto why = [&](const char* target, double timeout_s) {
    const auto reply = client.get(target, timeout_s);
    return reply.ok() ? "answered" : reply.status().message;
  };
  const auto expect = [&](const char* target, double timeout_s, const char* words) {
    const std::string said = why(target, timeout_s);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  expect("/stall", 0.05, "no answer within 0.05 s");
  expect("/garbage", 10, "no valid HTTP");
  expect("/end", 10, "before an answer");
  expect("/short", 10, "in the middle");
  HttpClient nobody(parse_url("http://127.0.0.1:1").value());
  EXPECT_NE(nobody.get("/", 10).status().message.find("cannot connect"), std::string::npos);
}

// "100 Continue" is no answer.
TEST(HttpClient, WaitsBehindAnInterimAnswer) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n";
  StubServer server([&](const StubRequest& request) -> StubAnswer {
    if (request.target == "/together") return {.steps = {{interim + answer}}};
    return {.steps = {{interim}, {answer, std::chrono::milliseconds(5)}}};
  });
  HttpClient client(url_of(server));
  for (const char* target : {"/together", "/apart"}) {
    const auto reply = client.get(target, 10);
    ASSERT_TRUE(reply.ok()) << reply.status().message;
    EXPECT_EQ(reply.value().status, 200);
    EXPECT_EQ(reply.value().body, "ok");
  }
}

class Collector final : public StreamReader {
 public:
  void on_start(int64_t now_ns) override { start_ns = now_ns; }
  void on_event(std::string_view data, int64_t received_ns) override {
    events.emplace_back(data);
    times.push_back(received_ns);
  }
  void on_end(StreamEnd the_end) override {
    end = std::move(the_end);
    ++num_ends;
  }
  std::vector<std::string> events;
  std::vector<int64_t> times;
  StreamEnd end;
  int64_t start_ns = 0;
  int num_ends = 0;
};

TEST(StreamClient, ManyStreamsAtOnce) {
  constexpr int kStreams = 300;
  StubServer server([](const StubRequest& request) {
    std::vector<testing::StubEvent> events;
    for (int i = 0; i < 20; ++i) events.push_back({request.body + "." + std::to_string(i)});
    return sse_answer(events);
  });
  StreamClient client({.url = url_of(server), .io_threads = 2});
  std::vector<std::shared_ptr<Collector>> readers;
  for (int i = 0; i < kStreams; ++i) {
    readers.push_back(std::make_shared<Collector>());
    client.start({.target = "/s", .body = std::to_string(i)}, readers.back());
  }
  client.wait();
  for (int i = 0; i < kStreams; ++i) {
    const Collector& r = *readers[static_cast<size_t>(i)];
    EXPECT_EQ(r.end.error, "");
    ASSERT_EQ(r.events.size(), 20u);
    EXPECT_EQ(r.events.back(), std::to_string(i) + ".19");
    EXPECT_TRUE(std::is_sorted(r.times.begin(), r.times.end()));
    EXPECT_LE(r.start_ns, r.times.front());
    EXPECT_GE(r.end.end_ns, r.times.back());
    EXPECT_EQ(r.num_ends, 1);
  }
}

// An event larger than what is read at once, and an end that comes together with the last bytes.
TEST(StreamClient, LargeEventsAndAnswersThatEndWithTheirConnection) {
  const std::string large(300'000, 'x');
  StubServer server([&](const StubRequest& request) -> StubAnswer {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const std::string data = request.target == "/large" ? large : "small";
    return {.steps = {{head + "data: " + data + "\n\n"}}, .close = true};
  });
  StreamClient client({.url = url_of(server), .timeout_s = 60});
  std::vector<std::shared_ptr<Collector>> readers;
  for (int i = 0; i < 200; ++i) {
    readers.push_back(std::make_shared<Collector>());
    client.start({.target = i % 2 == 0 ? "/large" : "/small", .body = "{}"}, readers.back());
  }
  client.wait();
  for (size_t i = 0; i < readers.size(); ++i) {
    EXPECT_EQ(readers[i]->end.error, "");
    ASSERT_EQ(readers[i]->events.size(), 1u);
    EXPECT_EQ(readers[i]->events[0], i % 2 == 0 ? large : "small");
  }
}

TEST(StreamClient, ARequestInManyPiecesAndOneWithoutAnswer) {
  const std::string body(20'000'000, 'b');
  StubServer server([](const StubRequest& request) -> StubAnswer {
    if (request.target == "/stall") return {.steps = {}, .close = false, .stall = true};
    return json_answer(std::to_string(request.body.size()));
  });
  StreamClient client({.url = url_of(server), .timeout_s = 60});
  auto answered = std::make_shared<Collector>();
  client.start({.target = "/", .body = body}, answered);
  client.wait();
  EXPECT_EQ(answered->end.error, "");
  EXPECT_EQ(answered->end.reply.body, std::to_string(body.size()));

  StreamClient hasty({.url = url_of(server), .timeout_s = 0.05});
  StreamClient lonely({.url = parse_url("http://127.0.0.1:1").value()});
  auto late = std::make_shared<Collector>();
  auto refused = std::make_shared<Collector>();
  hasty.start({.target = "/stall", .body = "{}"}, late);
  lonely.start({.target = "/", .body = "{}"}, refused);
  hasty.wait();
  lonely.wait();
  EXPECT_EQ(late->end.error, "no answer within 0.05 s");
  EXPECT_EQ(refused->end.error, "cannot connect: Connection refused");
}

// A server that never stops writing does not fill the client's memory.
TEST(StreamClient, AFloodIsCutOff) {
  const std::string flood(100'000'000, 'x');
  StubServer server([&](const StubRequest&) -> StubAnswer {
    return {.steps = {{"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"}, {flood}},
            .close = false,
            .stall = true};
  });
  StreamClient client({.url = url_of(server), .timeout_s = 60});
  auto flooded = std::make_shared<Collector>();
  client.start({.target = "/", .body = "{}"}, flooded);
  client.wait();
  EXPECT_EQ(flooded->end.error, "the answer is too large");
  HttpClient one(url_of(server));
  EXPECT_NE(one.get("/", 60).status().message.find("the answer is too large"), std::string::npos);
}

class LastTime final : public AnswerReader {
 public:
  void on_head(int /*status*/, std::string_view /*content_type*/) override {}
  bool on_body(std::string_view /*bytes*/, int64_t received_ns) override {
    time_ns = received_ns;
    return true;
  }
  int64_t time_ns = 0;
};

// Bytes that lay in the socket while the client was busy have the time of their coming. The kernel
// begins to note times a little after it is asked to: hence the tries.
TEST(ClientConnection, TimesAreThoseOfTheKernel) {
  using boost::asio::ip::tcp;
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  const SteadyClock clock;
  const Url url{.host = "127.0.0.1", .port = acceptor.local_endpoint().port(), .base = {}};
  const Endpoints endpoints = resolve(url).value();
  ClientConnection connection(endpoints, clock);
  LastTime reader;
  std::vector<char> scratch(4096);
  const int64_t start_ns = clock.now_ns();
  ASSERT_NE(connection.begin("GET / HTTP/1.1\r\n\r\n", reader), ClientConnection::Waits::kNothing);
  tcp::socket server = acceptor.accept();
  const auto send_and_read = [&](const std::string& bytes) {
    boost::asio::write(server, boost::asio::buffer(bytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const int64_t read_ns = clock.now_ns();
    const auto waits = connection.advance(scratch);
    EXPECT_NE(waits, ClientConnection::Waits::kNothing) << connection.error();
    return read_ns;
  };
  ASSERT_EQ(connection.advance(scratch), ClientConnection::Waits::kRead);  // connected and sent
  send_and_read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  bool noted = false;
  for (int i = 0; i < 1000 && !noted; ++i) {
    const int64_t before_ns = reader.time_ns;
    const int64_t read_ns = send_and_read("1\r\nx\r\n");
    EXPECT_GT(reader.time_ns, std::max(start_ns, before_ns));
    noted = reader.time_ns < read_ns;
  }
  EXPECT_TRUE(noted);
}

TEST(StreamClient, BodiesFailuresAndCancelling) {
  StubServer server([](const StubRequest& request) -> StubAnswer {
    if (request.target == "/400") return json_answer(R"({"error":{"message":"no"}})", 400);
    StubAnswer answer = sse_answer({{"one"}});
    answer.steps.pop_back();
    answer.close = request.target == "/cut";
    answer.stall = !answer.close;
    return answer;
  });
  StreamClient client({.url = url_of(server)});
  auto refused = std::make_shared<Collector>();
  auto cut = std::make_shared<Collector>();
  auto stalled = std::make_shared<Collector>();
  client.start({.target = "/400", .body = "{}"}, refused);
  client.start({.target = "/cut", .body = "{}"}, cut);
  client.wait();
  EXPECT_EQ(refused->end.reply.status, 400);
  EXPECT_TRUE(refused->events.empty());
  EXPECT_EQ(describe_failure(400, refused->end.reply.body), "HTTP 400: no");
  EXPECT_EQ(cut->events, std::vector<std::string>{"one"});
  EXPECT_NE(cut->end.error.find("in the middle"), std::string::npos) << cut->end.error;
  client.start({.target = "/stall", .body = "{}"}, stalled);
  client.cancel();
  client.wait();
  EXPECT_EQ(stalled->end.error, "cancelled");
}

TEST(Completion, ReadsTheThreeForms) {
  const Completion native = read_completion(200, R"({"text":"hi","meta_info":{
      "finish_reason":{"type":"length","length":2},"prompt_tokens":3,"completion_tokens":2,
      "cached_tokens":1,"e2e_latency":0.5}})");
  EXPECT_TRUE(native.ok()) << native.error;
  EXPECT_EQ(native.text, "hi");
  EXPECT_EQ(native.finish_reason, "length");
  EXPECT_EQ(native.completion_tokens, 2);
  EXPECT_EQ(native.server_seconds, 0.5);
  const Completion chat = read_completion(200, R"({"choices":[{"message":{"content":"B",
      "reasoning_content":"so"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,
      "completion_tokens":7,"reasoning_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}})");
  EXPECT_EQ(chat.text, "B");
  EXPECT_EQ(chat.reasoning, "so");
  EXPECT_EQ(chat.reasoning_tokens, 4);
  EXPECT_EQ(chat.cached_tokens, 2);
  const Completion text =
      read_completion(200, R"({"choices":[{"text":" 4","finish_reason":"stop"}],"usage":null})");
  EXPECT_EQ(text.text, " 4");
  EXPECT_EQ(text.completion_tokens, -1);
  EXPECT_EQ(read_completion(503, R"({"object":"error","message":"full"})").error, "HTTP 503: full");
  EXPECT_EQ(read_completion(200, R"({"error":{"message":"too long"}})").error, "too long");
  for (const char* bad : {"", "{}", "[]", "nonsense", R"({"choices":[]})",
                          R"({"text":"","meta_info":{"finish_reason":{"type":"abort"}}})"}) {
    EXPECT_FALSE(read_completion(200, bad).ok()) << bad;
  }
}

TEST(CompletionClient, KeepsToItsParallelismAndRetriesFromTheCallback) {
  std::atomic<int> in_flight{0};
  std::atomic<int> most{0};
  std::atomic<int> calls{0};
  StubServer server(
      [&](const StubRequest& request) {
        most = std::max(most.load(), ++in_flight);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --in_flight;
        if (++calls % 3 == 0) return json_answer(R"({"message":"busy"})", 503);
        const std::string text = json::parse(request.body).value().find("text")->as_string();
        return json_answer(fmt::format(R"({{"text":"{}","meta_info":{{}}}})", text));
      },
      8);
  CompletionClient client({.url = url_of(server), .parallel = 4});
  std::vector<std::string> answers(50);
  int num_retries = 0;
  std::function<void(size_t)> ask = [&](size_t i) {
    client.submit("/generate", json::Object{{"text", std::to_string(i)}}, [&, i](Completion c) {
      if (c.ok()) {
        answers[i] = c.text;
      } else {
        EXPECT_EQ(c.error, "HTTP 503: busy");
        ++num_retries;  // callbacks never overlap
        ask(i);
      }
    });
  };
  for (size_t i = 0; i < answers.size(); ++i) ask(i);
  client.wait();
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], std::to_string(i));
  EXPECT_EQ(calls, 50 + num_retries);
  EXPECT_GT(num_retries, 0);
  EXPECT_LE(most, 4);
}

TEST(CompletionClient, CancelEndsWhatWaits) {
  StubServer server([](const StubRequest&) { return StubAnswer{{}, false, true}; });
  CompletionClient client({.url = url_of(server), .parallel = 2});
  int num_cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    client.submit("/generate", json::Object{},
                  [&](Completion c) { num_cancelled += c.error == "cancelled" ? 1 : 0; });
  }
  client.cancel();
  client.wait();
  EXPECT_EQ(num_cancelled, 10);
}

}  // namespace
}  // namespace winnow::bench
