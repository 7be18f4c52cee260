#include "bench/client_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstring>
#include <optional>

namespace winnow::bench {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 16384;
constexpr uint32_t kMaxHeaderBytes = 65536;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable_t<Executor>());

// An answer on its way through Beast's parser.
class AnswerParser {
 public:
  explicit AnswerParser(AnswerReader& reader) : reader_(reader) { begin(); }

  // Bytes taken; the rest must come again with more behind it. error() where that makes no sense.
  size_t put(const char* bytes, size_t size, int64_t received_ns) {
    size_t used = 0;
    while (used < size && !parser_->is_done()) {
      error_code ec;
      const size_t n = parser_->put(asio::buffer(bytes + used, size - used), ec);
      used += n;
      if (ec && ec != http::error::need_more) {
        error_ = "no valid HTTP answer: " + ec.message();
        break;
      }
      if (interim()) {
        begin();
        continue;
      }
      if (!hand_over(received_ns) || n == 0) break;
    }
    return used;
  }

  // The server has closed its side: the end of an answer of no stated length.
  void put_eof(int64_t received_ns) {
    error_code ec;
    if (!parser_->is_header_done()) {
      error_ = "the connection ended before an answer";
      return;
    }
    parser_->put_eof(ec);
    if (ec || !parser_->is_done()) {
      error_ = "the connection ended in the middle of the answer";
      return;
    }
    hand_over(received_ns);
  }

  bool done() const { return parser_->is_done(); }
  bool keep_alive() const { return parser_->keep_alive(); }
  const std::string& error() const { return error_; }

 private:
  void begin() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(boost::none);
  }

  // "100 Continue" and the like: the answer comes behind it.
  bool interim() const { return parser_->is_done() && parser_->get().result_int() < 200; }

  bool hand_over(int64_t received_ns) {
    if (!parser_->is_header_done()) return true;
    auto& message = parser_->get();
    if (!head_seen_) {
      head_seen_ = true;
      const auto type = message[http::field::content_type];
      reader_.on_head(static_cast<int>(message.result_int()), {type.data(), type.size()});
    }
    if (message.body().empty()) return true;
    const bool more = reader_.on_body(message.body(), received_ns);
    message.body().clear();
    if (!more) error_ = "the answer is too large";
    return more;
  }

  AnswerReader& reader_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string error_;
  bool head_seen_ = false;
};

}  // namespace

Result<Endpoints> resolve(const Url& url) {
  asio::io_context io;
  tcp::resolver resolver(io);
  error_code ec;
  const auto found = resolver.resolve(url.host, std::to_string(url.port), ec);
  Endpoints endpoints;
  if (!ec) {
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  std::stable_partition(endpoints.begin(), endpoints.end(),
                        [](const tcp::endpoint& e) { return e.address().is_v4(); });
  if (endpoints.empty()) {
    return Status{
        StatusCode::kUnavailable, fmt::format("no address of {}: {}", url.host, ec.message()), {}};
  }
  return endpoints;
}

Awaitable<std::string> ClientConnection::exchange(std::string_view request,
                                                  AnswerReader& reader,
                                                  double timeout_s) {
  timed_out_ = aborted_ = false;
  start_timer(timeout_s);
  drop_if_stale();
  std::string error;
  for (bool again = true; again;) {
    const bool reused = socket_.is_open();
    any_byte_ = again = false;
    if (!reused) error = co_await connect();
    if (error.empty()) {
      auto [ec, _] =
          co_await asio::async_write(socket_, asio::buffer(request.data(), request.size()), kToken);
      // A server that refuses early may have answered all the same.
      std::string read_error = co_await read_answer(reader);
      error = read_error.empty() || !ec ? std::move(read_error) : "write: " + ec.message();
    }
    if (!error.empty()) {
      error_code ignored;
      socket_.close(ignored);
      // The server closed the idle connection just when we wrote.
      again = reused && !any_byte_ && !timed_out_ && !aborted_;
      if (again) error.clear();
    }
  }
  ++exchange_idx_;
  timer_.cancel();
  if (timed_out_) error = fmt::format("no answer within {:g} s", timeout_s);
  if (aborted_) error = "cancelled";
  co_return error;
}

Awaitable<std::string> ClientConnection::connect() {
  error_code last;
  for (const tcp::endpoint& endpoint : endpoints_) {
    error_code ignored;
    socket_.close(ignored);
    auto [ec] = co_await socket_.async_connect(endpoint, kToken);
    last = ec;
    if (!ec) {
      socket_.set_option(tcp::no_delay(true), ignored);
      co_return "";
    }
    if (timed_out_ || aborted_) break;
  }
  co_return "cannot connect: " + last.message();
}

Awaitable<std::string> ClientConnection::read_answer(AnswerReader& reader) {
  AnswerParser parser(reader);
  size_t kept = 0;
  while (!parser.done()) {
    if (kept == input_.size()) input_.resize(std::max(2 * kept, kReadBytes));
    auto [ec, n] = co_await socket_.async_read_some(
        asio::buffer(input_.data() + kept, input_.size() - kept), kToken);
    const int64_t now = clock_.now_ns();
    any_byte_ = any_byte_ || n > 0;
    if (ec == asio::error::eof) {
      parser.put_eof(now);
    } else if (ec) {
      co_return "read: " + ec.message();
    } else {
      const size_t filled = kept + n;
      const size_t used = parser.put(input_.data(), filled, now);
      kept = filled - used;
      std::memmove(input_.data(), input_.data() + used, kept);
    }
    if (!parser.error().empty()) co_return parser.error();
  }
  if (!parser.keep_alive()) {
    error_code ignored;
    socket_.close(ignored);
  }
  co_return "";
}

void ClientConnection::start_timer(double timeout_s) {
  timer_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(timeout_s)));
  timer_.async_wait([this, alive = std::weak_ptr(alive_), idx = exchange_idx_](error_code ec) {
    if (ec || alive.expired() || idx != exchange_idx_) return;
    timed_out_ = true;
    error_code ignored;
    socket_.close(ignored);
  });
}

void ClientConnection::abort() {
  aborted_ = true;
  error_code ignored;
  socket_.close(ignored);
}

void ClientConnection::drop_if_stale() {
  if (!socket_.is_open()) return;
  char byte = 0;
  const ssize_t n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  error_code ignored;
  socket_.close(ignored);  // closed by the server, or it sent what nobody asked for
}

}  // namespace winnow::bench
