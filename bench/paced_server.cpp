#include "paced_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/clock.h"
#include "base/error.h"

namespace winnow {

namespace {

constexpr int64_t kTickNs = 500'000;
constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

struct Stream {
  int fd = -1;
  int num_sent = 0;
  int num_events = 0;
  int64_t due_ns = 0;
};

class Loop {
 public:
  Loop(int listener, const PacedServerOptions& options)
      : listener_(listener),
        options_(options),
        text_(static_cast<size_t>(options.text_bytes), 'x') {
    poller_ = ::epoll_create1(0);
    watch(listener_);
  }

  [[noreturn]] void run() {
    int64_t tick_ns = clock_.now_ns();
    while (true) {
      take_input();
      send_due();
      tick_ns = std::max(tick_ns + kTickNs, clock_.now_ns() - kTickNs);
      const timespec until{tick_ns / 1'000'000'000, tick_ns % 1'000'000'000};
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
  }

 private:
  void watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poller_, EPOLL_CTL_ADD, fd, &event);
  }

  void take_input() {
    std::array<epoll_event, 256> ready;
    const int n = ::epoll_wait(poller_, ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < n; ++i) {
      const int fd = ready[static_cast<size_t>(i)].data.fd;
      fd == listener_ ? accept_all() : read_request(fd);
    }
  }

  void accept_all() {
    while (true) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
      if (fd < 0) return;
      const int one = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      watch(fd);
    }
  }

  void drop(int fd) {
    inputs_.erase(fd);
    std::erase_if(streams_, [&](const Stream& s) { return s.fd == fd; });
    ::close(fd);
  }

  void read_request(int fd) {
    std::array<char, 65536> bytes;
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (n <= 0) {
      if (n == 0 || errno != EAGAIN) drop(fd);
      return;
    }
    std::string& input = inputs_[fd];
    input.append(bytes.data(), static_cast<size_t>(n));
    const size_t head = input.find("\r\n\r\n");
    if (head == input.npos) return;
    size_t length = number_behind(input, "Content-Length: ");
    if (input.size() < head + 4 + length) return;
    const std::string request = std::exchange(input, {});
    if (request.starts_with("GET") || request.find("/flush_cache") != request.npos) {
      answer_json(fd);
    } else {
      start_stream(fd, request);
    }
  }

  static size_t number_behind(const std::string& text, std::string_view mark) {
    const size_t at = text.find(mark);
    return at == text.npos ? 0 : std::strtoul(text.c_str() + at + mark.size(), nullptr, 10);
  }

  void answer_json(int fd) const {
    const std::string body =
        fmt::format(R"({{"data":[{{"id":"paced"}}],"model_path":"{0}","tokenizer_path":"{0}"}})",
                    options_.tokenizer_path);
    write_all(fd, fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                              "Content-Length: {}\r\n\r\n{}",
                              body.size(), body));
  }

  void start_stream(int fd, const std::string& request) {
    size_t events = number_behind(request, "\"max_new_tokens\":");
    if (events == 0) events = static_cast<size_t>(options_.num_events);
    write_all(fd, kStreamHead);
    streams_.push_back({.fd = fd, .num_sent = 0, .num_events = static_cast<int>(events)});
    if (static_cast<int>(streams_.size()) >= options_.num_streams) begin();
  }

  // Streams that wait begin together, spread evenly over one gap.
  void begin() {
    const int64_t now = clock_.now_ns();
    int64_t waiting = 0;
    for (const Stream& s : streams_) waiting += s.due_ns == 0 ? 1 : 0;
    int64_t idx = 0;
    for (Stream& s : streams_) {
      if (s.due_ns == 0) s.due_ns = now + options_.gap_ns + options_.gap_ns * idx++ / waiting;
    }
  }

  void send_due() {
    const int64_t now = clock_.now_ns();
    std::vector<int> done;
    for (Stream& s : streams_) {
      if (s.due_ns == 0 || s.due_ns > now) continue;
      send_event(s);
      s.due_ns += options_.gap_ns;
      if (s.num_sent < s.num_events) continue;
      write_all(s.fd, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
      done.push_back(s.fd);
    }
    for (const int fd : done) drop(fd);
  }

  void send_event(Stream& s) {
    ++s.num_sent;
    const char* finish = s.num_sent < s.num_events ? "null" : R"({"type":"length"})";
    const std::string event = fmt::format(
        "data: {{\"text\":\"{}{}\",\"meta_info\":{{\"id\":\"0123456789abcdef\",\"prompt_tokens\":"
        "16,\"cached_tokens\":0,\"completion_tokens\":{},\"finish_reason\":{}}},\"sent_ns\":{}}}"
        "\n\n",
        text_, s.num_sent, s.num_sent, finish, clock_.now_ns());
    write_all(s.fd, fmt::format("{:x}\r\n{}\r\n", event.size(), event));
  }

  // The streams' buffers hold what is in flight; a reader that lets them fill up loses events.
  static void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  int listener_;
  PacedServerOptions options_;
  std::string text_;
  int poller_ = -1;
  SteadyClock clock_;
  std::vector<Stream> streams_;
  std::unordered_map<int, std::string> inputs_;
};

}  // namespace

PacedServer::PacedServer(const PacedServerOptions& options) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int one = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 8192) != 0) {
    throw_error("cannot listen on port {}", options.port);
  }
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  pid_ = ::fork();
  if (pid_ < 0) throw_error("cannot fork");
  if (pid_ == 0) Loop(listener, options).run();
  ::close(listener);
}

PacedServer::~PacedServer() {
  ::kill(pid_, SIGKILL);
  wait();
}

void PacedServer::wait() const { ::waitpid(pid_, nullptr, 0); }

}  // namespace winnow
