// A blocking HTTP/1.1 client over a raw socket, with the freedom to send anything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::testing {

struct HttpReply {
  int status = 0;                              // 0: the connection ended before a status line
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunked bodies joined
  bool complete = false;                       // by length, last chunk, or a closed connection

  json::Value json() const;                 // of the body; null where it is no JSON
  std::vector<std::string> events() const;  // payloads of "data: ...\n\n"
};

class HttpConnection {
 public:
  // timeout_ms bounds each read.
  explicit HttpConnection(int port, int64_t timeout_ms = 20000);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void send(std::string_view bytes);
  // Reads one reply. head_only: as after HEAD.
  HttpReply read_reply(bool head_only = false);
  // Reads until the bytes seen contain the text; false when the connection ends first.
  bool read_until(std::string_view text);
  // Some bytes that are there; "" at the end.
  std::string read_some();
  // What has been read and not been taken by a reply.
  const std::string& buffered() const { return buffer_; }
  void half_close();
  void close();
  // True when the server has closed its side (waits up to the timeout).
  bool at_end();
  void set_receive_buffer(int bytes);
  int fd() const { return fd_; }

 private:
  bool fill();
  int fd_ = -1;
  std::string buffer_;
};

std::string request_text(std::string_view method,
                         std::string_view target,
                         std::string_view body,
                         std::string_view extra_headers = "");

// One request on its own connection.
HttpReply http_get(int port, std::string_view target, std::string_view extra_headers = "");
HttpReply http_post(int port,
                    std::string_view target,
                    std::string_view body,
                    std::string_view extra_headers = "");

}  // namespace winnow::testing
