#include "bench/client_connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "bench/answer_parser.h"

namespace winnow::bench {

namespace {

// A server that writes as fast as it is read must not keep the thread from other sockets.
constexpr int kReadsPerTurn = 16;

std::string message_of(int error) { return std::generic_category().message(error); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// How long ago the message's last byte came in; 0 where the kernel did not write it down.
int64_t age_ns(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec came{};
    timespec now{};
    std::memcpy(&came, CMSG_DATA(c), sizeof(came));
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::max<int64_t>(0, nanoseconds(now) - nanoseconds(came));
  }
  return 0;
}

}  // namespace

Result<Endpoints> resolve(const Url& url) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &found);
  if (rc != 0) {
    return Status{StatusCode::kUnavailable,
                  fmt::format("no address of {}: {}", url.host, ::gai_strerror(rc)),
                  {}};
  }
  Endpoints endpoints;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    Endpoint endpoint{.address = {}, .size = a->ai_addrlen};
    std::memcpy(&endpoint.address, a->ai_addr, a->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  ::freeaddrinfo(found);
  std::stable_partition(endpoints.begin(), endpoints.end(),
                        [](const Endpoint& e) { return e.address.ss_family == AF_INET; });
  return endpoints;
}

ClientConnection::ClientConnection(const Endpoints& endpoints, const Clock& clock)
    : endpoints_(endpoints), clock_(clock) {}

ClientConnection::~ClientConnection() { close(); }

ClientConnection::Waits ClientConnection::begin(std::string_view request, AnswerReader& reader) {
  request_ = request;
  reader_ = &reader;
  error_.clear();
  last_received_ns_ = clock_.now_ns();  // nothing comes before
  drop_if_stale();
  start_over();
  reused_ = fd_ >= 0;
  return reused_ ? write() : connect();
}

ClientConnection::Waits ClientConnection::advance(std::span<char> scratch, bool drain) {
  switch (state_) {
    case State::kConnecting:
      return connected();
    case State::kWriting:
      return write();
    case State::kReading:
      return read(scratch, drain);
    case State::kIdle:
      break;
  }
  return Waits::kNothing;
}

void ClientConnection::fail(std::string error) {
  close();
  error_ = std::move(error);
  state_ = State::kIdle;
}

void ClientConnection::start_over() {
  parser_ = std::make_unique<AnswerParser>(*reader_);
  pending_.clear();
  write_error_.clear();
  next_endpoint_ = num_written_ = 0;
  any_byte_ = false;
}

ClientConnection::Waits ClientConnection::connect() {
  while (next_endpoint_ < endpoints_.size()) {
    const Endpoint& endpoint = endpoints_[next_endpoint_++];
    close();
    fd_ = ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ >= 0) {
      ++num_opened_;
      const int on = 1;
      ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      // The kernel notes when bytes come, so that a busy client does not measure itself.
      ::setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
      if (::connect(fd_, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) ==
          0) {
        return write();
      }
      if (errno == EINPROGRESS) {
        state_ = State::kConnecting;
        return Waits::kWrite;
      }
    }
    connect_errno_ = errno;
  }
  return end("cannot connect: " + message_of(connect_errno_));
}

ClientConnection::Waits ClientConnection::connected() {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return write();
  connect_errno_ = error;
  return connect();
}

ClientConnection::Waits ClientConnection::write() {
  state_ = State::kWriting;
  while (num_written_ < request_.size()) {
    const ssize_t n =
        ::send(fd_, request_.data() + num_written_, request_.size() - num_written_, MSG_NOSIGNAL);
    if (n >= 0) {
      num_written_ += static_cast<size_t>(n);
    } else if (would_block(errno)) {
      return Waits::kWrite;
    } else if (errno != EINTR) {
      // A server that refuses early may have answered all the same.
      write_error_ = "write: " + message_of(errno);
      break;
    }
  }
  state_ = State::kReading;
  return Waits::kRead;
}

ClientConnection::Waits ClientConnection::read(std::span<char> scratch, bool drain) {
  more_ = false;
  for (int reads = 0; !parser_->done(); ++reads) {
    if (reads == kReadsPerTurn) {
      more_ = true;
      return Waits::kRead;
    }
    iovec buffer{.iov_base = scratch.data(), .iov_len = scratch.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = ::recvmsg(fd_, &message, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return would_block(errno) ? Waits::kRead : end("read: " + message_of(errno));
    const int64_t age = age_ns(message);
    last_received_ns_ = std::max(last_received_ns_, clock_.now_ns() - age);
    const auto size = static_cast<size_t>(n);
    if (size == 0) {
      parser_->put_eof(last_received_ns_);
    } else {
      any_byte_ = true;
      feed({scratch.data(), size}, last_received_ns_);
    }
    if (!parser_->error().empty()) return end(parser_->error());
    if (!parser_->done() && size < scratch.size() && !drain) return Waits::kRead;
  }
  if (!parser_->keep_alive()) close();
  return end("");
}

void ClientConnection::feed(std::string_view bytes, int64_t received_ns) {
  if (!pending_.empty()) {
    pending_.append(bytes);
    pending_.erase(0, parser_->put(pending_.data(), pending_.size(), received_ns));
    return;
  }
  const size_t used = parser_->put(bytes.data(), bytes.size(), received_ns);
  pending_.assign(bytes.substr(used));
}

ClientConnection::Waits ClientConnection::end(std::string error) {
  state_ = State::kIdle;
  if (!error.empty()) {
    close();
    // The server closed the idle connection just when we wrote.
    if (std::exchange(reused_, false) && !any_byte_) {
      start_over();
      return connect();
    }
    if (!write_error_.empty()) error = write_error_;
  }
  error_ = std::move(error);
  return Waits::kNothing;
}

void ClientConnection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void ClientConnection::drop_if_stale() {
  if (fd_ < 0) return;
  char byte = 0;
  const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && would_block(errno)) return;
  close();  // closed by the server, or it sent what nobody asked for
}

}  // namespace winnow::bench
