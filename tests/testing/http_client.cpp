#include "testing/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace winnow::testing {

json::Value HttpReply::json() const {
  auto parsed = json::parse(body);
  return parsed.ok() ? parsed.value() : json::Value();
}

std::vector<std::string> HttpReply::events() const {
  std::vector<std::string> out;
  std::string_view rest = body;
  while (rest.starts_with("data: ")) {
    const size_t end = rest.find("\n\n");
    if (end == rest.npos) break;
    out.emplace_back(rest.substr(6, end - 6));
    rest.remove_prefix(end + 2);
  }
  return out;
}

HttpConnection::HttpConnection(int port, int64_t timeout_ms) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fd_ = -1;
    throw std::runtime_error(fmt::format("connect to port {} failed", port));
  }
}

HttpConnection::~HttpConnection() { close(); }

void HttpConnection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void HttpConnection::half_close() { ::shutdown(fd_, SHUT_WR); }

void HttpConnection::set_receive_buffer(int bytes) {
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void HttpConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // the server may refuse what is not read yet
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

bool HttpConnection::fill() {
  char chunk[16384];
  const ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<size_t>(n));
  return true;
}

std::string HttpConnection::read_some() {
  if (buffer_.empty()) fill();
  return std::exchange(buffer_, {});
}

bool HttpConnection::read_until(std::string_view text) {
  while (buffer_.find(text) == std::string::npos) {
    if (!fill()) return false;
  }
  return true;
}

bool HttpConnection::at_end() {
  while (fill()) {
  }
  char byte;
  return ::recv(fd_, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

HttpReply HttpConnection::read_reply(bool head_only) {
  HttpReply reply;
  if (!read_until("\r\n\r\n")) return reply;
  const size_t head_end = buffer_.find("\r\n\r\n");
  std::string_view head = std::string_view(buffer_).substr(0, head_end + 2);
  reply.status = std::stoi(std::string(head.substr(9, 3)));
  head.remove_prefix(head.find("\r\n") + 2);
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const size_t colon = line.find(": ");
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    reply.headers[name] = std::string(line.substr(std::min(colon + 2, line.size())));
    head.remove_prefix(end + 2);
  }
  buffer_.erase(0, head_end + 4);
  if (head_only || reply.status == 204 || reply.status == 100) {
    reply.complete = true;
    return reply;
  }
  if (reply.headers.count("content-length") > 0) {
    const size_t length = std::stoul(reply.headers["content-length"]);
    while (buffer_.size() < length && fill()) {
    }
    reply.complete = buffer_.size() >= length;
    reply.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
  } else if (reply.headers["transfer-encoding"] == "chunked") {
    while (read_until("\r\n")) {
      const size_t length = std::stoul(buffer_, nullptr, 16);
      buffer_.erase(0, buffer_.find("\r\n") + 2);
      while (buffer_.size() < length + 2 && fill()) {
      }
      if (buffer_.size() < length + 2) break;
      reply.body.append(buffer_, 0, length);
      buffer_.erase(0, length + 2);
      if (length == 0) {
        reply.complete = true;
        break;
      }
    }
  } else {
    while (fill()) {
    }
    reply.body = std::exchange(buffer_, {});
    reply.complete = true;
  }
  return reply;
}

std::string request_text(std::string_view method,
                         std::string_view target,
                         std::string_view body,
                         std::string_view extra_headers) {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nhost: localhost\r\n{}", method, target, extra_headers);
  if (!body.empty() || method == "POST" || method == "PUT") {
    if (extra_headers.find("content-type") == extra_headers.npos) {
      text += "content-type: application/json\r\n";
    }
    text += fmt::format("content-length: {}\r\n", body.size());
  }
  return text + "\r\n" + std::string(body);
}

HttpReply http_get(int port, std::string_view target, std::string_view extra_headers) {
  HttpConnection connection(port);
  connection.send(request_text("GET", target, "", extra_headers));
  return connection.read_reply();
}

HttpReply http_post(int port,
                    std::string_view target,
                    std::string_view body,
                    std::string_view extra_headers) {
  HttpConnection connection(port);
  connection.send(request_text("POST", target, body, extra_headers));
  return connection.read_reply();
}

}  // namespace winnow::testing
