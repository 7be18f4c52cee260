// A thousand streams at once: none lost, none held up by readers that do not read, memory bounded.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "testing/serving_fixture.h"

namespace winnow {
namespace {

using testing::HttpConnection;
using testing::request_text;
using testing::ServingFixture;
using testing::ServingOptions;
using testing::text_script;

constexpr int kStreams = 1000;
constexpr int kStalledReaders = 20;
constexpr int kTokens = 40;

struct StreamState {
  std::unique_ptr<HttpConnection> connection;
  std::string received;
  bool done = false;
};

// Reads whatever comes until every stream has seen [DONE]; false when nothing comes for long.
bool read_all(std::vector<StreamState>& streams) {
  const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < streams.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poller, EPOLL_CTL_ADD, streams[i].connection->fd(), &event);
  }
  size_t num_done = 0;
  std::array<epoll_event, 256> ready;
  std::array<char, 65536> chunk;
  bool alive = true;
  while (num_done < streams.size() && alive) {
    const int n = ::epoll_wait(poller, ready.data(), static_cast<int>(ready.size()), 60000);
    alive = n > 0;
    for (int k = 0; k < n; ++k) {
      StreamState& stream = streams[ready[static_cast<size_t>(k)].data.u64];
      const int fd = stream.connection->fd();
      const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (got > 0) stream.received.append(chunk.data(), static_cast<size_t>(got));
      if (stream.received.find("data: [DONE]") != std::string::npos || got == 0) {
        stream.done = got > 0;
        ++num_done;
        ::epoll_ctl(poller, EPOLL_CTL_DEL, fd, nullptr);
      }
    }
  }
  ::close(poller);
  return alive;
}

TEST(ServingLoad, AThousandStreamsBesideReadersThatDoNotRead) {
  server::raise_open_file_limit();
  ServingOptions options;
  options.engine.max_running_requests = kStreams + kStalledReaders;
  options.engine.num_pages = 16384;
  ServingFixture serving(text_script(std::string(kTokens - 1, 'x')), options);
  const std::string request =
      request_text("POST", "/v1/completions", R"({"prompt":"Hi","stream":true,"max_tokens":1000})");

  std::vector<std::unique_ptr<HttpConnection>> stalled;
  for (int i = 0; i < kStalledReaders; ++i) {
    stalled.push_back(std::make_unique<HttpConnection>(serving.port()));
    stalled.back()->set_receive_buffer(2048);
    stalled.back()->send(request);
  }
  std::vector<StreamState> streams(kStreams);
  for (StreamState& stream : streams) {
    stream.connection = std::make_unique<HttpConnection>(serving.port());
    stream.connection->send(request);
  }
  ASSERT_TRUE(read_all(streams));
  for (const StreamState& stream : streams) {
    EXPECT_TRUE(stream.done);
    size_t events = 0;
    for (size_t at = 0; (at = stream.received.find("\"text\":\"x\"", at)) != std::string::npos;) {
      ++events;
      ++at;
    }
    EXPECT_EQ(events, static_cast<size_t>(kTokens - 1));
  }
  EXPECT_EQ(serving.get("/health").status, 200);
  stalled.clear();
  EXPECT_TRUE(serving.quiet());
}

}  // namespace
}  // namespace winnow
