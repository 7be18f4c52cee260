#include "server/http_server.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "base/open_files.h"
#include "server/http_connection.h"

namespace winnow::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr int kListenBacklog = 4096;
constexpr int64_t kReservedFiles = 128;  // weights, logs, epoll
constexpr milliseconds kAcceptRetry{50};

}  // namespace

class HttpServer::Core {
 public:
  Core(HttpServerOptions options, HttpHandler handler)
      : acceptor_(*init(std::move(options), std::move(handler))),
        work_(shared_.io->get_executor()) {
    listen();
  }

  int port() const { return port_; }
  const ServerShared& shared() const { return shared_; }

  void start() {
    asio::co_spawn(*shared_.io, accept_loop(), asio::detached);
    thread_ = std::thread([io = shared_.io] { io->run(); });
  }

  void stop_accepting() {
    shared_.draining = true;
    asio::post(*shared_.io, [this] {
      close_acceptor();
      for_each_connection([](HttpConnection& c) { c.begin_drain(); });
    });
  }

  void stop() {
    if (!thread_.joinable()) return;
    shared_.draining = true;
    asio::post(*shared_.io, [this] {
      close_acceptor();
      for_each_connection([](HttpConnection& c) { c.abort(); });
      work_.reset();  // run() returns once the last connection has unwound
    });
    thread_.join();
  }

 private:
  const std::shared_ptr<asio::io_context>& init(HttpServerOptions options, HttpHandler handler) {
    shared_.options = std::move(options);
    shared_.handler = std::move(handler);
    shared_.io = std::make_shared<asio::io_context>(1);
    shared_.body_budget = std::make_shared<BodyBudget>(shared_.options.max_waiting_body_bytes);
    if (shared_.options.max_connections <= 0) {
      shared_.options.max_connections =
          std::max<int64_t>(16, raise_open_file_limit() - kReservedFiles);
    }
    return shared_.io;
  }

  void listen() {
    const HttpServerOptions& options = shared_.options;
    error_code ec;
    tcp::resolver resolver(*shared_.io);
    auto found =
        resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, ec);
    if (ec) throw_error("cannot resolve --host {}: {}", options.host, ec.message());
    // "localhost" has two addresses; clients try 127.0.0.1.
    tcp::endpoint endpoint = found.begin()->endpoint();
    for (const auto& entry : found) {
      if (entry.endpoint().address().is_v4()) endpoint = entry.endpoint();
    }
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) acceptor_.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(kListenBacklog, ec);
    if (ec) {
      throw_error("cannot listen on {}:{}: {}", options.host, options.port, ec.message());
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void close_acceptor() {
    error_code ignored;
    acceptor_.close(ignored);
  }

  template <typename Fn>
  void for_each_connection(Fn fn) {
    std::vector<std::shared_ptr<HttpConnection>> alive;
    for (auto& [_, weak] : connections_) {
      if (auto connection = weak.lock()) alive.push_back(std::move(connection));
    }
    for (auto& connection : alive) fn(*connection);
  }

  asio::awaitable<void> accept_loop() {
    asio::steady_timer pause(*shared_.io);
    bool warned = false;
    while (acceptor_.is_open()) {
      if (shared_.open_connections >= shared_.options.max_connections) {
        pause.expires_after(kAcceptRetry);
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      auto [ec, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
      if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor) break;
      if (ec) {  // out of descriptors, or the client was gone before we took it
        if (!std::exchange(warned, true)) log::warn("accept: {}", ec.message());
        pause.expires_after(kAcceptRetry);
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      // Taken just before the socket was closed: nobody would end this connection any more.
      if (shared_.draining) break;
      socket.set_option(tcp::no_delay(true), ec);
      spawn(std::move(socket));
    }
  }

  void spawn(tcp::socket socket) {
    ++shared_.accepted;
    auto connection = std::make_shared<HttpConnection>(shared_, std::move(socket));
    HttpConnection* key = connection.get();
    connections_[key] = connection;
    asio::co_spawn(
        *shared_.io, [connection]() mutable { return connection->run(); },
        [this, key](const std::exception_ptr& failure) {
          connections_.erase(key);
          if (!failure) return;
          try {
            std::rethrow_exception(failure);
          } catch (const std::exception& e) {
            log::error("connection: {}", e.what());
          }
        });
  }

  ServerShared shared_;
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unordered_map<HttpConnection*, std::weak_ptr<HttpConnection>> connections_;  // I/O thread
  int port_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : core_(std::make_unique<Core>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { stop(); }  // NOLINT(bugprone-exception-escape)

int HttpServer::port() const { return core_->port(); }
void HttpServer::start() { core_->start(); }
void HttpServer::stop_accepting() { core_->stop_accepting(); }
void HttpServer::stop() { core_->stop(); }

bool HttpServer::wait_idle(int64_t timeout_ms) const {
  const auto deadline = std::chrono::steady_clock::now() + milliseconds(timeout_ms);
  while (core_->shared().open_exchanges > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

HttpServerStats HttpServer::stats() const {
  const ServerShared& s = core_->shared();
  return {.open_connections = s.open_connections,
          .open_exchanges = s.open_exchanges,
          .accepted = s.accepted,
          .clients_gone = s.clients_gone,
          .slow_readers_cut = s.slow_readers_cut};
}

}  // namespace winnow::server
