#include "server/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "testing/http_client.h"

namespace winnow::server {
namespace {

using testing::HttpConnection;
using testing::HttpReply;
using testing::request_text;

// Echoes; or hands the exchange to the test (path /hold).
class HttpServerTest : public ::testing::Test {
 protected:
  void serve(HttpServerOptions options = {}) {
    options.port = 0;
    server_ = std::make_unique<HttpServer>(
        options, [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
          if (request.path == "/hold") {
            std::lock_guard lock(mutex_);
            held_.push_back(std::move(exchange));
            arrived_.notify_all();
            return;
          }
          exchange->respond({.body = request.method + " " + request.path + " " + request.query +
                                     " " + request.body,
                             .content_type = "text/plain"});
        });
    server_->start();
  }
  void TearDown() override {
    held_.clear();
    server_.reset();
  }

  std::shared_ptr<Exchange> next_held() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(arrived_.wait_for(lock, std::chrono::seconds(20), [&] { return !held_.empty(); }));
    auto exchange = held_.front();
    held_.erase(held_.begin());
    return exchange;
  }

  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 10000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  std::unique_ptr<HttpServer> server_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::shared_ptr<Exchange>> held_;
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  serve();
  HttpConnection connection(server_->port());
  for (int i = 0; i < 3; ++i) {
    connection.send(request_text("POST", "/a%20b?x=1", "hello"));
    const HttpReply reply = connection.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "POST /a b x=1 hello");
    EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "*");
  }
  EXPECT_EQ(server_->stats().accepted, 1);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  serve();
  HttpConnection connection(server_->port());
  std::string all;
  for (int i = 0; i < 50; ++i) all += request_text("POST", "/p", std::to_string(i));
  connection.send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(connection.read_reply().body, "POST /p  " + std::to_string(i));
  }
}

TEST_F(HttpServerTest, AHeldRequestDoesNotLoseThePipelinedOneBehindIt) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(request_text("POST", "/hold", "") + request_text("POST", "/next", "x"));
  auto exchange = next_held();
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_FALSE(exchange->gone());
  exchange->respond({.body = "late"});
  EXPECT_EQ(connection.read_reply().body, "late");
  EXPECT_EQ(connection.read_reply().body, "POST /next  x");
}

TEST_F(HttpServerTest, HeadSendsTheLengthButNoBody) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(request_text("HEAD", "/h", ""));
  const HttpReply head = connection.read_reply(true);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(std::string("HEAD /h  ").size()));
  connection.send(request_text("GET", "/g", ""));
  EXPECT_EQ(connection.read_reply().body, "GET /g  ");
}

TEST_F(HttpServerTest, Http10ClosesAfterTheAnswer) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(connection.read_reply().body, "GET /old  ");
  EXPECT_TRUE(connection.at_end());
}

TEST_F(HttpServerTest, AnswersExpect100Continue) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(
      "POST /e HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
  EXPECT_EQ(connection.read_reply().status, 100);
  connection.send("body");
  EXPECT_EQ(connection.read_reply().body, "POST /e  body");
}

TEST_F(HttpServerTest, TakesChunkedBodies) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  connection.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(connection.read_reply().body, "POST /c  abcde");
}

// B107: a body over the limit.
TEST_F(HttpServerTest, RefusesLargeBodiesWith413AndStaysAlive) {
  serve({.max_body_bytes = 1000});
  for (const bool announce : {true, false}) {
    HttpConnection connection(server_->port());
    if (announce) {
      connection.send(request_text("POST", "/big", std::string(5 << 20, 'x')));
    } else {
      connection.send("POST /big HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
      connection.send("1000\r\n" + std::string(0x1000, 'x') + "\r\n0\r\n\r\n");
    }
    const HttpReply reply = connection.read_reply();
    EXPECT_EQ(reply.status, 413);
    const json::Value body = reply.json();
    ASSERT_NE(body.find("error"), nullptr);
    EXPECT_EQ(body.find("code")->as_integer(), 413);
  }
  EXPECT_EQ(testing::http_get(server_->port(), "/ok").status, 200);
}

TEST_F(HttpServerTest, RefusesLongHeadersAndGarbage) {
  serve({.max_header_bytes = 2048});
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\r\nx: " + std::string(5000, 'y') + "\r\n\r\n", 431},
      {"GET / HTTP/9.9\r\n\r\n", 400},
      {"\x16\x03\x01\x02garbage\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", 400},
      {"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400},
  };
  for (const auto& [bytes, status] : cases) {
    HttpConnection connection(server_->port());
    connection.send(bytes);
    const HttpReply reply = connection.read_reply();
    EXPECT_EQ(reply.status, status) << bytes.substr(0, 40);
    EXPECT_FALSE(reply.json().is_null());
    EXPECT_TRUE(connection.at_end());
  }
  EXPECT_EQ(testing::http_get(server_->port(), "/ok").status, 200);
}

// A coding that is not undone would make another body out of the bytes, or another request.
TEST_F(HttpServerTest, RefusesCodingsItDoesNotUndo) {
  serve();
  for (const char* header :
       {"transfer-encoding: gzip", "transfer-encoding: gzip, chunked",
        "transfer-encoding: xchunked", "transfer-encoding: identity", "content-encoding: gzip"}) {
    HttpConnection connection(server_->port());
    connection.send(fmt::format("POST /x HTTP/1.1\r\nhost: x\r\n{}\r\n{}\r\n4\r\nbody\r\n0\r\n\r\n",
                                header, header[0] == 'c' ? "content-length: 14\r\n" : ""));
    const HttpReply reply = connection.read_reply();
    EXPECT_EQ(reply.status, 400) << header;
    EXPECT_NE(reply.body.find("-encoding"), std::string::npos) << header << reply.body;
    EXPECT_TRUE(connection.at_end()) << header;
  }
}

TEST_F(HttpServerTest, PassesOverEmptyLinesBetweenRequests) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("\r\n\r\n" + request_text("POST", "/a", "x") + "\r\n");
  EXPECT_EQ(connection.read_reply().body, "POST /a  x");
  connection.send(request_text("POST", "/b", "y"));
  EXPECT_EQ(connection.read_reply().body, "POST /b  y");
}

TEST_F(HttpServerTest, ATruncatedRequestJustEnds) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc");
  connection.half_close();
  EXPECT_TRUE(connection.at_end());
  EXPECT_TRUE(eventually([&] { return server_->stats().open_connections == 0; }));
}

TEST_F(HttpServerTest, IdleConnectionsAreClosed) {
  serve({.idle_timeout_ms = 50});
  HttpConnection connection(server_->port());
  connection.send(request_text("GET", "/one", ""));
  EXPECT_EQ(connection.read_reply().status, 200);
  EXPECT_TRUE(connection.at_end());
}

TEST_F(HttpServerTest, StreamsInChunksAndKeepsTheConnection) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  exchange->start_stream("text/event-stream");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(exchange->send("data: " + std::to_string(i) + "\n\n"));
  exchange->finish_stream();
  const HttpReply reply = connection.read_reply();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(reply.events(), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  connection.send(request_text("GET", "/again", ""));
  EXPECT_EQ(connection.read_reply().status, 200);
}

TEST_F(HttpServerTest, AStreamToHttp10EndsWithTheConnection) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("GET /hold HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  auto exchange = next_held();
  exchange->start_stream("text/event-stream");
  exchange->send("data: a\n\n");
  exchange->finish_stream();
  const HttpReply reply = connection.read_reply();
  EXPECT_EQ(reply.body, "data: a\n\n");
  EXPECT_TRUE(connection.at_end());
}

// B103: a client that goes away is noticed without anything being written.
TEST_F(HttpServerTest, NoticesAClientThatLeaves) {
  serve();
  enum class Kind { kWaiting, kStreaming, kPipelined };
  for (const Kind kind : {Kind::kWaiting, Kind::kStreaming, Kind::kPipelined}) {
    std::atomic<int> calls{0};
    HttpConnection connection(server_->port());
    connection.send(request_text("GET", "/hold", ""));
    if (kind == Kind::kPipelined) connection.send(request_text("GET", "/more", ""));
    auto exchange = next_held();
    exchange->on_gone([&] { ++calls; });
    if (kind == Kind::kStreaming) {
      exchange->start_stream("text/event-stream");
      exchange->send("data: a\n\n");
      EXPECT_TRUE(connection.read_until("data: a"));
    }
    EXPECT_EQ(calls, 0);
    connection.close();
    EXPECT_TRUE(eventually([&] { return calls == 1; }));
    EXPECT_TRUE(exchange->gone());
    EXPECT_FALSE(exchange->send("data: b\n\n"));
    exchange->finish_stream();
    exchange->respond({});
    EXPECT_TRUE(eventually([&] { return server_->stats().open_connections == 0; }));
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(server_->stats().clients_gone, 3);
}

TEST_F(HttpServerTest, ACallbackSetAfterTheClientLeftRunsAtOnce) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  connection.close();
  EXPECT_TRUE(eventually([&] { return exchange->gone(); }));
  bool called = false;
  exchange->on_gone([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST_F(HttpServerTest, ACompleteAnswerIsNeverReportedAsGone) {
  serve();
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> calls{0};
    HttpConnection connection(server_->port());
    connection.send(request_text("GET", "/hold", ""));
    auto exchange = next_held();
    exchange->on_gone([&] { ++calls; });
    exchange->start_stream("text/event-stream");
    exchange->send("data: [DONE]\n\n");
    exchange->finish_stream();
    EXPECT_TRUE(connection.read_reply().complete);
    connection.close();
    EXPECT_TRUE(eventually([&] { return server_->stats().open_connections == 0; }));
    EXPECT_EQ(calls, 0);
  }
  EXPECT_EQ(server_->stats().clients_gone, 0);
}

// B110: a reader that stops reading neither stalls others nor makes memory grow.
TEST_F(HttpServerTest, CutsOffAReaderThatDoesNotRead) {
  serve({.max_stream_backlog_bytes = 256 << 10});
  std::atomic<int> calls{0};
  HttpConnection connection(server_->port());
  connection.set_receive_buffer(4096);
  connection.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  exchange->on_gone([&] { ++calls; });
  exchange->start_stream("text/event-stream");
  const std::string event = "data: " + std::string(1000, 'x') + "\n\n";
  int64_t sent = 0;
  while (exchange->send(event) && sent < (64 << 20)) {
    sent += static_cast<int64_t>(event.size());
    if (sent % (1 << 18) < 1100) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(sent, 64 << 20);
  EXPECT_TRUE(eventually([&] { return calls == 1; }));
  EXPECT_EQ(server_->stats().slow_readers_cut, 1);
  EXPECT_EQ(testing::http_get(server_->port(), "/ok").status, 200);
}

TEST_F(HttpServerTest, ASlowReaderOfCumulativeEventsSeesTheNewestOnly) {
  serve();
  HttpConnection connection(server_->port());
  connection.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  exchange->start_stream("text/event-stream");
  const int num_events = 400;
  for (int i = 0; i < num_events; ++i) {
    EXPECT_TRUE(
        exchange->send("data: " + std::to_string(i) + std::string(100 << 10, ' ') + "\n\n", 0));
  }
  exchange->finish_stream();
  const HttpReply reply = connection.read_reply();
  EXPECT_TRUE(reply.complete);
  const auto events = reply.events();
  ASSERT_FALSE(events.empty());
  EXPECT_LT(events.size(), static_cast<size_t>(num_events));
  EXPECT_EQ(events.back().substr(0, 3), "399");
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_GT(std::stoi(events[i]), std::stoi(events[i - 1]));
  }
}

TEST_F(HttpServerTest, DrainsAndStops) {
  serve();
  HttpConnection idle(server_->port());
  idle.send(request_text("GET", "/one", ""));
  EXPECT_EQ(idle.read_reply().status, 200);
  HttpConnection busy(server_->port());
  busy.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  server_->stop_accepting();
  EXPECT_TRUE(idle.at_end());
  EXPECT_FALSE(server_->wait_idle(20));
  EXPECT_TRUE(eventually([&] {
    try {
      HttpConnection refused(server_->port());
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  }));
  exchange->respond({.body = "last words"});
  const HttpReply reply = busy.read_reply();
  EXPECT_EQ(reply.body, "last words");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(busy.at_end());
  EXPECT_TRUE(server_->wait_idle(5000));
  server_->stop();
}

TEST_F(HttpServerTest, StopCutsWhatIsLeft) {
  serve();
  HttpConnection busy(server_->port());
  busy.send(request_text("GET", "/hold", ""));
  auto exchange = next_held();
  std::atomic<int> calls{0};
  exchange->on_gone([&] { ++calls; });
  server_->stop();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(busy.at_end());
  EXPECT_FALSE(exchange->send("after the end"));
}

// A connection taken at the very moment of the stop used to hold it until its read timed out.
TEST_F(HttpServerTest, StopsAmongConnectionsThatAreJustArriving) {
  for (int round = 0; round < 20; ++round) {
    serve({.read_timeout_ms = 1'000'000'000});
    std::vector<std::unique_ptr<HttpConnection>> arriving;
    for (int i = 0; i < 50; ++i) {
      arriving.push_back(std::make_unique<HttpConnection>(server_->port()));
      arriving.back()->send("POST /half");
    }
    server_->stop();
    EXPECT_EQ(server_->stats().open_connections, 0);
  }
}

TEST_F(HttpServerTest, APortInUseIsAnErrorThatNamesIt) {
  serve();
  try {
    HttpServer second({.port = server_->port()}, [](HttpRequest, std::shared_ptr<Exchange>) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(server_->port())), std::string::npos);
  }
}

TEST(HttpMessage, DecodesPathsAndQueries) {
  EXPECT_EQ(percent_decode("/a%2Fb%2"), "/a/b%2");
  EXPECT_EQ(percent_decode("%zz%41"), "%zzA");
  HttpRequest request{.method = "GET",
                      .path = "/",
                      .query = "a=1&b=%20x&c",
                      .headers = {{"Content-Type", "t"}},
                      .body = ""};
  EXPECT_EQ(request.query_value("b"), " x");
  EXPECT_EQ(request.query_value("c"), "");
  EXPECT_EQ(request.query_value("d"), std::nullopt);
  EXPECT_EQ(*request.header("content-type"), "t");
}

}  // namespace
}  // namespace winnow::server
