#include "testing/stub_server.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <thread>

namespace winnow::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
}

class StubServer::Core {
 public:
  Core(Script script, int threads) : script_(std::move(script)) {
    const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
    acceptor_.open(any.protocol());
    acceptor_.bind(any);
    acceptor_.listen(8192);
    asio::co_spawn(io_, accept_loop(), asio::detached);
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }

  ~Core() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const { return acceptor_.local_endpoint().port(); }
  int64_t num_requests() const { return num_requests_; }
  int64_t num_connections() const { return num_connections_; }

 private:
  asio::awaitable<void> accept_loop() {
    while (true) {
      auto [ec, socket] = co_await acceptor_.async_accept(kToken);
      if (ec) co_return;
      ++num_connections_;
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    std::string buffer;
    while (true) {
      auto [ec, head_bytes] =
          co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer), "\r\n\r\n", kToken);
      if (ec) co_return;
      StubRequest request;
      request.head = buffer.substr(0, head_bytes);
      buffer.erase(0, head_bytes);
      const size_t space = request.head.find(' ');
      request.method = request.head.substr(0, space);
      request.target =
          request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
      const std::string_view name = "\r\nContent-Length: ";
      const size_t at = request.head.find(name);
      const size_t length =
          at == std::string::npos ? 0 : std::stoul(request.head.substr(at + name.size()));
      while (buffer.size() < length) {
        char piece[16384];
        auto [read_ec, n] = co_await socket.async_read_some(asio::buffer(piece), kToken);
        if (read_ec) co_return;
        buffer.append(piece, n);
      }
      request.body = buffer.substr(0, length);
      buffer.erase(0, length);
      ++num_requests_;
      const StubAnswer answer = script_(request);
      if (!co_await play(socket, answer)) co_return;
    }
  }

  // False: the connection is of no more use.
  static asio::awaitable<bool> play(tcp::socket& socket, const StubAnswer& answer) {
    asio::steady_timer timer(socket.get_executor());
    auto due = std::chrono::steady_clock::now();
    for (const StubStep& step : answer.steps) {
      if (step.delay.count() > 0) {
        due += step.delay;
        timer.expires_at(due);
        co_await timer.async_wait(kToken);
      }
      auto [ec, _] = co_await asio::async_write(socket, asio::buffer(step.bytes), kToken);
      if (ec) co_return false;
    }
    if (answer.stall) {
      char byte = 0;
      co_await socket.async_read_some(asio::buffer(&byte, 1), kToken);
      co_return false;
    }
    co_return !answer.close;
  }

  Script script_;
  asio::io_context io_;
  tcp::acceptor acceptor_{io_};
  std::atomic<int64_t> num_requests_{0};
  std::atomic<int64_t> num_connections_{0};
  std::vector<std::thread> threads_;
};

StubServer::StubServer(Script script, int threads)
    : core_(std::make_unique<Core>(std::move(script), threads)) {}
StubServer::~StubServer() = default;

int StubServer::port() const { return core_->port(); }
std::string StubServer::url() const { return fmt::format("http://127.0.0.1:{}", port()); }
int64_t StubServer::num_requests() const { return core_->num_requests(); }
int64_t StubServer::num_connections() const { return core_->num_connections(); }

StubAnswer json_answer(std::string_view body, int status) {
  return {.steps = {{.bytes = fmt::format("HTTP/1.1 {} Stub\r\nContent-Type: application/json\r\n"
                                          "Content-Length: {}\r\n\r\n{}",
                                          status, body.size(), body)}}};
}

StubAnswer sse_answer(const std::vector<StubEvent>& events) {
  StubAnswer answer;
  answer.steps.push_back({.bytes =
                              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8"
                              "\r\nTransfer-Encoding: chunked\r\n\r\n"});
  for (const StubEvent& event : events) {
    const std::string text = "data: " + event.data + "\n\n";
    answer.steps.push_back(
        {.bytes = fmt::format("{:x}\r\n{}\r\n", text.size(), text), .delay = event.delay});
  }
  answer.steps.push_back({.bytes = "0\r\n\r\n"});
  return answer;
}

}  // namespace winnow::testing
