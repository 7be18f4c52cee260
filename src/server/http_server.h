// HTTP/1.1 over TCP on one I/O thread: keep-alive, pipelining, chunked streams, limits, and a
// watch for clients that leave. Boost.Beast stays behind this header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/exchange.h"
#include "server/http_message.h"

namespace winnow::server {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 30000;                           // 0: any free one
  size_t max_header_bytes = 32 << 10;         // 431 beyond
  size_t max_body_bytes = 32 << 20;           // 413 beyond
  int64_t max_waiting_body_bytes = 1 << 30;   // of all bodies not parsed yet; 503 beyond
  size_t max_stream_backlog_bytes = 1 << 20;  // unread chunks of one stream
  int64_t idle_timeout_ms = 5000;             // keep-alive connection without a request
  int64_t read_timeout_ms = 30000;            // silence in the middle of a request
  int64_t write_timeout_ms = 60000;           // no byte of an answer taken
  int64_t max_connections = 0;                // 0: as many as the fd limit allows
};

struct HttpServerStats {
  int64_t open_connections = 0;
  int64_t open_exchanges = 0;  // requests whose answer is not complete
  int64_t accepted = 0;
  int64_t clients_gone = 0;  // left before their answer was complete
  int64_t slow_readers_cut = 0;
};

// Called on the I/O thread for every request; must not block.
using HttpHandler = std::function<void(HttpRequest, const std::shared_ptr<Exchange>&)>;

class HttpServer {
 public:
  // Binds and listens. Throws Error when the address cannot be had.
  HttpServer(HttpServerOptions options, HttpHandler handler);
  ~HttpServer();  // stop()  NOLINT(bugprone-exception-escape): out of memory ends the process
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  void start();
  // Closes the listening socket and idle connections; answers under way go on, and each
  // connection ends with its next answer.
  void stop_accepting();
  // True when no exchange is open within timeout_ms.
  bool wait_idle(int64_t timeout_ms) const;
  // Cuts what is left and joins the I/O thread.
  void stop();
  HttpServerStats stats() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace winnow::server
