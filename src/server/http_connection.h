// One TCP connection: reads requests, hands them over, writes answers, watches for a client that
// leaves. Lives on the I/O thread only. Private to the HTTP server.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>

#include "server/api_error.h"
#include "server/body_budget.h"
#include "server/http_exchange.h"
#include "server/http_parser.h"
#include "server/http_server.h"
#include "server/read_deadline.h"

namespace winnow::server {

// What the connections of one server share. Counters are read by any thread.
struct ServerShared {
  HttpServerOptions options;
  HttpHandler handler;
  std::shared_ptr<boost::asio::io_context> io;  // exchanges may outlive the server
  std::shared_ptr<BodyBudget> body_budget;      // so may requests
  std::atomic<bool> draining{false};
  std::atomic<int64_t> open_connections{0};
  std::atomic<int64_t> open_exchanges{0};
  std::atomic<int64_t> accepted{0};
  std::atomic<int64_t> clients_gone{0};
  std::atomic<int64_t> slow_readers_cut{0};
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(ServerShared& shared, boost::asio::ip::tcp::socket socket);
  ~HttpConnection();

  boost::asio::awaitable<void> run();
  // For the drain: an idle connection closes now, a busy one with its answer.
  void begin_drain();
  void abort();

 private:
  enum class ReadResult { kRequest, kClosed, kAnswered };
  boost::asio::awaitable<ReadResult> read_request(std::shared_ptr<HttpExchange>& exchange);
  boost::asio::awaitable<bool> wait_for_first_byte();
  boost::asio::awaitable<boost::system::error_code> read_message(RequestParser& parser,
                                                                 BodyCharge& charge);
  boost::asio::awaitable<bool> answer(std::shared_ptr<HttpExchange> exchange);
  boost::asio::awaitable<bool> write_answer(HttpExchange& exchange);
  boost::asio::awaitable<void> watch_client();
  boost::asio::awaitable<bool> write_all(const std::string& bytes);
  boost::asio::awaitable<void> refuse(ApiError error);
  std::shared_ptr<HttpExchange> make_exchange(AnswerFraming framing);
  void on_wake();
  void cut_off_reader();
  void reset_hard();

  ServerShared& shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  ReadDeadline read_deadline_;
  boost::asio::steady_timer signal_;  // cancelled when the exchange has something to write
  std::shared_ptr<HttpExchange> current_;
  bool first_request_ = true;
};

}  // namespace winnow::server
