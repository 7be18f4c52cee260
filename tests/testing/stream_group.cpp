#include "testing/stream_group.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace winnow::testing {

StreamGroup::StreamGroup(int port, int count, std::string_view request) {
  for (int i = 0; i < count; ++i) {
    Stream& stream = streams_.emplace_back();
    stream.connection = std::make_unique<HttpConnection>(port);
    stream.connection->send(request);
  }
}

bool StreamGroup::read_all() {
  constexpr int kTimeoutMs = 60000;
  const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < streams_.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poller, EPOLL_CTL_ADD, streams_[i].connection->fd(), &event);
  }
  size_t num_ended = 0;
  std::array<epoll_event, 256> ready;
  std::array<char, 65536> chunk;
  bool alive = true;
  while (num_ended < streams_.size() && alive) {
    const int n = ::epoll_wait(poller, ready.data(), static_cast<int>(ready.size()), kTimeoutMs);
    alive = n > 0;
    for (int k = 0; k < n; ++k) {
      Stream& stream = streams_[ready[static_cast<size_t>(k)].data.u64];
      const int fd = stream.connection->fd();
      const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (got > 0) stream.received.append(chunk.data(), static_cast<size_t>(got));
      stream.done = stream.received.find("data: [DONE]") != std::string::npos;
      if (!stream.done && got != 0) continue;
      ++num_ended;
      ::epoll_ctl(poller, EPOLL_CTL_DEL, fd, nullptr);
    }
  }
  ::close(poller);
  return alive;
}

}  // namespace winnow::testing
