#include "bench/stream_client.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/open_files.h"
#include "bench/client_connection.h"
#include "bench/stream_worker.h"

namespace winnow::bench {

class StreamClient::Core {
 public:
  explicit Core(Options options) : options_(std::move(options)) {
    raise_open_file_limit();
    auto endpoints = resolve(options_.url);
    if (!endpoints.ok()) throw Error(endpoints.status().message);
    endpoints_ = std::move(endpoints.value());
    for (int i = 0; i < std::max(1, options_.io_threads); ++i) {
      workers_.push_back(std::make_unique<StreamWorker>(endpoints_, options_.timeout_s, [this] {
        const std::lock_guard lock(mutex_);
        if (num_active_.fetch_sub(1) == 1) idle_.notify_all();
      }));
    }
  }

  ~Core() {
    cancel();
    wait();
  }

  void start(const HttpRequest& request, std::shared_ptr<StreamReader> reader) {
    num_active_.fetch_add(1);
    StreamWorker& worker = *workers_[next_worker_.fetch_add(1) % workers_.size()];
    // The bytes are made before the clock starts.
    worker.start(request_bytes(options_.url, request, options_.headers, true), std::move(reader));
  }

  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return num_active_.load() == 0; });
  }

  void cancel() {
    for (auto& worker : workers_) worker->cancel();
  }

  const Url& url() const { return options_.url; }

 private:
  Options options_;
  Endpoints endpoints_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::atomic<int64_t> num_active_{0};
  std::atomic<size_t> next_worker_{0};
  std::vector<std::unique_ptr<StreamWorker>> workers_;  // last: they end before the rest
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
