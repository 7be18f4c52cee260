#include "server/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>

#include "base/log.h"
#include "server/http_parser.h"

namespace winnow::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);
// While requests wait in the socket behind the one being answered, readability says nothing about
// the client; then the peer's state is polled.
constexpr milliseconds kPollPeriod{50};
// After refusing a body unread, what the client still sends is thrown away for this long, because
// closing at once would reset the connection before the client has read why.
constexpr milliseconds kLingerTime{1000};
constexpr size_t kReadChunkBytes = 64 << 10;

bool peer_closed(int fd) {
  pollfd entry{fd, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// Some clients end a body with a line break that its length does not count (RFC 9112, 2.2).
void skip_empty_lines(beast::flat_buffer& buffer) {
  const std::string_view bytes(static_cast<const char*>(buffer.data().data()), buffer.size());
  buffer.consume(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
}

}  // namespace

HttpConnection::HttpConnection(ServerShared& shared, asio::ip::tcp::socket socket)
    : shared_(shared),
      stream_(std::move(socket)),
      read_deadline_(stream_.socket()),
      signal_(stream_.get_executor()) {
  signal_.expires_at(asio::steady_timer::time_point::max());
  ++shared_.open_connections;
}

HttpConnection::~HttpConnection() { --shared_.open_connections; }

void HttpConnection::begin_drain() {
  if (current_) {
    current_->forbid_keep_alive();
  } else {
    stream_.close();
  }
}

void HttpConnection::abort() { stream_.close(); }

void HttpConnection::reset_hard() {
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.close();
}

asio::awaitable<void> HttpConnection::run() {
  for (;;) {
    std::shared_ptr<HttpExchange> exchange;
    const ReadResult result = co_await read_request(exchange);
    if (result != ReadResult::kRequest) break;
    if (!co_await answer(std::move(exchange))) break;
    if (shared_.draining) break;
    first_request_ = false;
  }
  error_code ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_both, ignored);
  stream_.close();
}

asio::awaitable<bool> HttpConnection::wait_for_first_byte() {
  stream_.expires_after(milliseconds(first_request_ ? shared_.options.read_timeout_ms
                                                    : shared_.options.idle_timeout_ms));
  for (skip_empty_lines(buffer_); buffer_.size() == 0; skip_empty_lines(buffer_)) {
    auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kReadChunkBytes / 16), kResult);
    if (ec) co_return false;
    buffer_.commit(n);
  }
  co_return true;
}

// The limit is on the whole header, and on each silence in the body.
asio::awaitable<error_code> HttpConnection::read_message(RequestParser& parser,
                                                         BodyCharge& charge) {
  const milliseconds limit(shared_.options.read_timeout_ms);
  read_deadline_.expires_after(limit);
  auto [ec, n] = co_await http::async_read_header(stream_, buffer_, parser, kResult);
  if (ec || header_error(parser)) co_return ec;
  // A client of HTTP/1.0 would take it for the answer.
  if (equal_ignoring_case(parser.get()[http::field::expect], "100-continue") &&
      parser.get().version() >= 11 && !parser.is_done()) {
    if (!co_await write_all("HTTP/1.1 100 Continue\r\n\r\n")) co_return asio::error::broken_pipe;
  }
  while (!ec && !parser.is_done()) {
    read_deadline_.expires_after(limit);
    std::tie(ec, n) = co_await http::async_read_some(stream_, buffer_, parser, kResult);
    if (!charge.grow_to(std::ssize(parser.get().body()))) co_return kNoRoomForBody;
  }
  co_return ec;
}

asio::awaitable<HttpConnection::ReadResult> HttpConnection::read_request(
    std::shared_ptr<HttpExchange>& exchange) {
  if (!co_await wait_for_first_byte()) co_return ReadResult::kClosed;
  stream_.expires_never();
  RequestParser parser;
  configure(parser, shared_.options);
  auto charge = std::make_shared<BodyCharge>(shared_.body_budget);
  const error_code ec = co_await read_message(parser, *charge);
  read_deadline_.expires_never();
  std::optional<ApiError> error;
  if (ec && read_deadline_.passed()) {
    error = read_timeout_error(shared_.options);
  } else if (ec) {
    error = parse_error(ec, shared_.options);
  } else {
    error = header_error(parser);
  }
  if (error) {
    charge.reset();  // now: telling the client takes its time
    std::string().swap(parser.get().body());
    co_await refuse(*error);
    co_return ReadResult::kAnswered;
  }
  if (ec) co_return ReadResult::kClosed;
  exchange = make_exchange(answer_framing(parser));
  HttpRequest request = take_request(parser);
  request.body_charge = std::move(charge);
  shared_.handler(std::move(request), exchange);
  co_return ReadResult::kRequest;
}

std::shared_ptr<HttpExchange> HttpConnection::make_exchange(AnswerFraming framing) {
  if (shared_.draining) framing.keep_alive = false;
  auto wake = [io = shared_.io, weak = weak_from_this()] {
    asio::post(*io, [weak] {
      if (auto self = weak.lock()) self->on_wake();
    });
  };
  current_ = std::make_shared<HttpExchange>(framing, shared_.options.max_stream_backlog_bytes,
                                            std::move(wake));
  return current_;
}

void HttpConnection::on_wake() {
  signal_.cancel();
  if (current_ != nullptr && current_->cut_off()) cut_off_reader();
}

void HttpConnection::cut_off_reader() {
  if (!stream_.socket().is_open()) return;
  log::warn("a client that does not read its stream was cut off");
  ++shared_.slow_readers_cut;
  reset_hard();  // ends the write that waits for it
}

asio::awaitable<bool> HttpConnection::answer(std::shared_ptr<HttpExchange> exchange) {
  using namespace asio::experimental::awaitable_operators;
  ++shared_.open_exchanges;
  stream_.expires_never();
  auto first = co_await (write_answer(*exchange) || watch_client());
  const bool keep_alive = first.index() == 0 && std::get<0>(first);
  current_.reset();
  if (exchange->mark_gone()) ++shared_.clients_gone;
  --shared_.open_exchanges;
  co_return keep_alive;
}

// False: the connection ends.
asio::awaitable<bool> HttpConnection::write_answer(HttpExchange& exchange) {
  for (;;) {
    HttpExchange::Outgoing out = exchange.take();
    if (exchange.cut_off()) {
      cut_off_reader();
      co_return false;
    }
    if (!out.bytes.empty() && !co_await write_all(out.bytes)) co_return false;
    if (out.complete) {
      exchange.mark_complete();
      co_return out.keep_alive;
    }
    if (out.bytes.empty()) co_await signal_.async_wait(kResult);
  }
}

// Returns when the client is gone, and not before.
asio::awaitable<void> HttpConnection::watch_client() {
  auto& socket = stream_.socket();
  for (;;) {
    auto [ec] = co_await socket.async_wait(asio::socket_base::wait_read, kResult);
    if (ec) co_return;
    char byte;
    const ssize_t n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (n > 0) {  // the next request waits there already
      asio::steady_timer timer(stream_.get_executor());
      while (!peer_closed(socket.native_handle())) {
        timer.expires_after(kPollPeriod);
        auto [timer_ec] = co_await timer.async_wait(kResult);
        if (timer_ec || !socket.is_open()) co_return;
      }
      break;
    }
  }
  stream_.close();  // whatever is being written ends as well
}

asio::awaitable<bool> HttpConnection::write_all(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    stream_.expires_after(milliseconds(shared_.options.write_timeout_ms));
    auto [ec, n] = co_await stream_.async_write_some(
        asio::buffer(bytes.data() + sent, bytes.size() - sent), kResult);
    if (ec) co_return false;
    sent += n;
  }
  stream_.expires_never();
  co_return true;
}

asio::awaitable<void> HttpConnection::refuse(ApiError error) {
  const std::string body = error_body(error);
  const std::string length = fmt::format("content-length: {}\r\n", body.size());
  const std::string head = response_head(error.http_status, "application/json", {}, length, false);
  if (!co_await write_all(head + body)) co_return;
  error_code ec;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ec);
  std::string sink(kReadChunkBytes, '\0');
  stream_.expires_after(kLingerTime);
  while (!ec) {
    std::tie(ec, std::ignore) = co_await stream_.async_read_some(asio::buffer(sink), kResult);
  }
}

}  // namespace winnow::server
