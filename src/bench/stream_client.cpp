#include "bench/stream_client.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/open_files.h"
#include "bench/client_connection.h"
#include "bench/sse_parser.h"

namespace winnow::bench {

namespace asio = boost::asio;

namespace {

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
      return true;
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

class StreamClient::Core {
 public:
  explicit Core(Options options) : options_(std::move(options)) {
    raise_open_file_limit();
    auto endpoints = resolve(options_.url);
    if (!endpoints.ok()) throw Error(endpoints.status().message);
    endpoints_ = std::move(endpoints.value());
    for (int i = 0; i < std::max(1, options_.io_threads); ++i) {
      workers_.push_back(std::make_unique<Worker>());
    }
  }

  ~Core() {  // NOLINT(bugprone-exception-escape): nothing to be done without a thread's join
    cancel();
    wait();
    for (auto& worker : workers_) worker->work.reset();
    for (auto& worker : workers_) worker->thread.join();
  }

  void start(const HttpRequest& request, std::shared_ptr<StreamReader> reader) {
    num_active_.fetch_add(1);
    Worker& worker = *workers_[next_worker_.fetch_add(1) % workers_.size()];
    // The bytes are made before the clock starts.
    auto bytes = request_bytes(options_.url, request, options_.headers, true);
    asio::co_spawn(worker.io, run(worker, std::move(bytes), std::move(reader)), asio::detached);
  }

  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return num_active_.load() == 0; });
  }

  void cancel() {
    for (auto& worker : workers_) {
      asio::post(worker->io, [w = worker.get()] {
        for (ClientConnection* connection : w->connections) connection->abort();
      });
    }
  }

  const Url& url() const { return options_.url; }

 private:
  struct Worker {
    Worker() : work(io.get_executor()), thread([this] { io.run(); }) {}
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work;
    std::unordered_set<ClientConnection*> connections;  // under way; the thread's own
    std::thread thread;
  };

  Awaitable<void> run(Worker& worker, std::string bytes, std::shared_ptr<StreamReader> reader) {
    ClientConnection connection(worker.io, endpoints_, clock_);
    worker.connections.insert(&connection);
    Answer answer(*reader);
    reader->on_start(clock_.now_ns());
    std::string error = co_await connection.exchange(bytes, answer, options_.timeout_s);
    worker.connections.erase(&connection);
    answer.finish(std::move(error), clock_.now_ns());
    reader.reset();
    const std::lock_guard lock(mutex_);
    if (num_active_.fetch_sub(1) == 1) idle_.notify_all();
  }

  Options options_;
  SteadyClock clock_;
  Endpoints endpoints_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::atomic<int64_t> num_active_{0};
  std::atomic<size_t> next_worker_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
};

StreamClient::StreamClient(Options options) : core_(std::make_unique<Core>(std::move(options))) {}
StreamClient::~StreamClient() = default;

void StreamClient::start(const HttpRequest& request, std::shared_ptr<StreamReader> reader) {
  core_->start(request, std::move(reader));
}
void StreamClient::wait() { core_->wait(); }
void StreamClient::cancel() { core_->cancel(); }
const Url& StreamClient::url() const { return core_->url(); }

}  // namespace winnow::bench
