#include "bench/stream_worker.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <system_error>
#include <utility>

#include "bench/answer_parser.h"
#include "bench/sse_parser.h"

namespace winnow::bench {

namespace {

constexpr size_t kScratchBytes = 65536;
constexpr size_t kMaxReady = 512;  // sockets a look
// From so many streams on the thread lets answers gather for a moment: waking for each event alone
// costs more than reading it. Their times do not suffer: the kernel notes them.
constexpr size_t kManyStreams = 256;
constexpr timespec kRest{.tv_sec = 0, .tv_nsec = 1'000'000};

// Reads one answer: an event stream into events, anything else into a body.
class Answer final : public AnswerReader {
 public:
  explicit Answer(StreamReader& reader) : reader_(reader) {}

  void on_head(int status, std::string_view content_type) override {
    end.reply.status = status;
    end.reply.content_type = content_type;
    streams_ = status == 200 && content_type.starts_with("text/event-stream");
  }

  bool on_body(std::string_view bytes, int64_t received_ns) override {
    received_ns_ = received_ns;
    if (!streams_) {
      end.reply.body.append(bytes);
      return end.reply.body.size() <= kMaxBodyBytes;
    }
    return events_.feed(bytes, [&](std::string_view data) { reader_.on_event(data, received_ns); });
  }

  void finish(std::string error, int64_t now_ns) {
    if (streams_ && error.empty()) {
      events_.finish([&](std::string_view data) { reader_.on_event(data, received_ns_); });
    }
    end.end_ns = error.empty() && received_ns_ > 0 ? received_ns_ : now_ns;
    end.error = std::move(error);
    reader_.on_end(std::move(end));
  }

  StreamEnd end;

 private:
  StreamReader& reader_;
  SseParser events_;
  int64_t received_ns_ = 0;
  bool streams_ = false;
};

}  // namespace

struct StreamWorker::Exchange {
  Exchange(const Endpoints& endpoints, const Clock& clock, Command command)
      : request(std::move(command.request)),
        reader(std::move(command.reader)),
        answer(*reader),
        connection(endpoints, clock) {}

  std::string request;
  std::shared_ptr<StreamReader> reader;
  Answer answer;
  ClientConnection connection;
  ClientConnection::Waits watched = ClientConnection::Waits::kNothing;
  int64_t watched_opened = 0;  // the connection's num_opened() that epoll knows
  std::multimap<int64_t, Exchange*>::iterator deadline;
};

StreamWorker::StreamWorker(const Endpoints& endpoints,
                           double timeout_s,
                           std::function<void()> on_end)
    : endpoints_(endpoints),
      timeout_s_(timeout_s),
      on_end_(std::move(on_end)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      scratch_(kScratchBytes) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ < 0 || wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    throw_error("cannot wait for sockets: {}", std::generic_category().message(errno));
  }
  thread_ = std::thread([this] { run(); });
}

StreamWorker::~StreamWorker() {
  send({.kind = Command::Kind::kStop, .request = {}, .reader = {}});
  thread_.join();
  ::close(epoll_);
  ::close(wake_);
}

void StreamWorker::start(std::string request, std::shared_ptr<StreamReader> reader) {
  send({.kind = Command::Kind::kStart, .request = std::move(request), .reader = std::move(reader)});
}

void StreamWorker::cancel() { send({.kind = Command::Kind::kCancel, .request = {}, .reader = {}}); }

void StreamWorker::send(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
    if (commands_.size() > 1) return;  // it has been woken for the first
  }
  const uint64_t one = 1;
  // Fails only where the counter is full, and then it is awake.
  [[maybe_unused]] const ssize_t n = ::write(wake_, &one, sizeof(one));
}

void StreamWorker::run() {
  std::array<epoll_event, kMaxReady> ready{};
  while (obey_commands()) {
    const int n = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), wait_ms());
    for (int i = 0; i < n; ++i) {
      // An exchange has one socket, so it stands here once, and advancing it ends no other.
      const epoll_event& event = ready[static_cast<size_t>(i)];
      if (event.data.ptr == nullptr) continue;  // commands
      auto& exchange = *static_cast<Exchange*>(event.data.ptr);
      const bool closed = event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
      watch(exchange, exchange.connection.advance(scratch_, closed));
    }
    expire();
    rest();
  }
}

// False: stop.
bool StreamWorker::obey_commands() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_, &count, sizeof(count));
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (Command& command : commands) {
    if (command.kind == Command::Kind::kStop) return false;
    if (command.kind == Command::Kind::kCancel) {
      cancel_all();
    } else {
      begin(std::move(command));
    }
  }
  return true;
}

void StreamWorker::begin(Command command) {
  auto made = std::make_unique<Exchange>(endpoints_, clock_, std::move(command));
  Exchange& exchange = *made;
  exchanges_.emplace(&exchange, std::move(made));
  const int64_t now_ns = clock_.now_ns();
  exchange.deadline = deadlines_.emplace(now_ns + std::llround(timeout_s_ * 1e9), &exchange);
  exchange.reader->on_start(now_ns);
  watch(exchange, exchange.connection.begin(exchange.request, exchange.answer));
}

void StreamWorker::cancel_all() {
  while (!exchanges_.empty()) fail(*exchanges_.begin()->first, "cancelled");
}

void StreamWorker::watch(Exchange& exchange, ClientConnection::Waits waits) {
  if (waits == ClientConnection::Waits::kNothing) return finish(exchange);
  const bool known = exchange.watched_opened == exchange.connection.num_opened();
  // Where bytes are left, saying it again makes an edge of them.
  if (known && waits == exchange.watched && !exchange.connection.more()) return;
  exchange.watched = waits;
  exchange.watched_opened = exchange.connection.num_opened();
  const bool reads = waits == ClientConnection::Waits::kRead;
  // By edges: by level, every socket is looked at once more after it has been read.
  epoll_event event{.events = (reads ? EPOLLIN | EPOLLRDHUP : EPOLLOUT) | uint32_t{EPOLLET},
                    .data = {.ptr = &exchange}};
  if (::epoll_ctl(epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, exchange.connection.fd(),
                  &event) != 0) {
    fail(exchange, "cannot wait for a socket: " + std::generic_category().message(errno));
  }
}

void StreamWorker::fail(Exchange& exchange, std::string error) {
  exchange.connection.fail(std::move(error));
  finish(exchange);
}

void StreamWorker::finish(Exchange& exchange) {
  deadlines_.erase(exchange.deadline);
  const auto node = exchanges_.extract(&exchange);
  exchange.answer.finish(exchange.connection.error(), clock_.now_ns());
  exchange.reader.reset();
  on_end_();
}

void StreamWorker::expire() {
  const int64_t now_ns = clock_.now_ns();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
    fail(*deadlines_.begin()->second, fmt::format("no answer within {:g} s", timeout_s_));
  }
}

int StreamWorker::wait_ms() const {
  if (deadlines_.empty()) return -1;
  const int64_t left_ns = deadlines_.begin()->first - clock_.now_ns();
  return static_cast<int>(std::clamp<int64_t>(left_ns / 1'000'000 + 1, 0, INT_MAX));
}

void StreamWorker::rest() const {
  if (exchanges_.size() < kManyStreams) return;
  pollfd commands{.fd = wake_, .events = POLLIN, .revents = 0};
  ::ppoll(&commands, 1, &kRest, nullptr);
}

}  // namespace winnow::bench
