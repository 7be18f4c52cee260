// Requests that come slowly, in part, or in great number.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "server/http_server.h"
#include "testing/http_client.h"
#include "testing/serving_fixture.h"

namespace winnow::server {
namespace {

using testing::eventually;
using testing::HttpConnection;
using testing::HttpReply;
using testing::request_text;

class HttpReading : public ::testing::Test {
 protected:
  void serve(HttpServerOptions options = {}) {
    options.port = 0;
    server_ = std::make_unique<HttpServer>(
        options, [](HttpRequest request, const std::shared_ptr<Exchange>& exchange) {
          exchange->respond({.body = request.method + " " + request.path + " " + request.body,
                             .content_type = "text/plain"});
        });
    server_->start();
  }

  std::unique_ptr<HttpServer> server_;
};

// Half-sent bodies of many connections would not fit the memory.
TEST_F(HttpReading, BodiesTogetherAreBounded) {
  serve({.max_waiting_body_bytes = 100'000});
  const std::string head = "POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 150000\r\n\r\n";
  HttpConnection first(server_->port());
  HttpConnection second(server_->port());
  first.send(head + std::string(140'000, 'x'));
  second.send(head + std::string(140'000, 'x'));
  // One of them came too late, and whoever is let in gets an answer.
  second.send(std::string(10'000, 'x'));
  first.send(std::string(10'000, 'x'));
  std::multiset<int> statuses = {first.read_reply().status, second.read_reply().status};
  EXPECT_EQ(statuses, (std::multiset<int>{200, 503}));
  for (int i = 0; i < 20; ++i) {  // what was held is given back, each time
    EXPECT_EQ(testing::http_post(server_->port(), "/b", std::string(150'000, 'x')).status, 200);
  }
  HttpConnection third(server_->port());
  third.send(head + std::string(140'000, 'x'));
  EXPECT_EQ(testing::http_post(server_->port(), "/c", std::string(60'000, 'x')).status, 200);
  third.send(std::string(10'000, 'x'));
  EXPECT_EQ(third.read_reply().status, 200);
}

// To whom an interim answer would be the answer.
TEST_F(HttpReading, Http10GetsNo100Continue) {
  serve();
  HttpConnection connection(server_->port());
  connection.send("POST /a HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  connection.send("abc");
  const HttpReply reply = connection.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST /a abc");
}

// Whoever stalls in the middle of a request is told, wherever that is.
TEST_F(HttpReading, AHalfSentRequestIs408) {
  serve({.idle_timeout_ms = 20000, .read_timeout_ms = 50});
  const std::string head = "POST / HTTP/1.1\r\nhost: x\r\n";
  for (const std::string& half :
       {std::string("P"), head, head + "content-length: 100\r\n\r\n",
        head + "content-length: 100\r\n\r\nabc", head + "transfer-encoding: chunked\r\n\r\n3\r\nab",
        head + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        head + "expect: 100-continue\r\ncontent-length: 3\r\n\r\n",
        request_text("GET", "/one", "") + head}) {
    HttpConnection connection(server_->port());
    connection.send(half);
    HttpReply reply = connection.read_reply();
    if (reply.status == 100 || reply.status == 200) reply = connection.read_reply();
    EXPECT_EQ(reply.status, 408) << half;
    EXPECT_EQ(reply.headers["connection"], "close");
    EXPECT_NE(reply.body.find("0.05 s"), std::string::npos) << reply.body;
    EXPECT_TRUE(connection.at_end());
  }
  EXPECT_TRUE(eventually([&] { return server_->stats().open_connections == 0; }));
}

TEST_F(HttpReading, ABodyMayTakeLongAsLongAsItComes) {
  serve({.read_timeout_ms = 2000});
  HttpConnection connection(server_->port());
  connection.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 30\r\n\r\n");
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    connection.send("x");
  }
  EXPECT_EQ(connection.read_reply().status, 200);
  connection.send(request_text("GET", "/two", ""));
  EXPECT_EQ(connection.read_reply().status, 200);
}

}  // namespace
}  // namespace winnow::server
