#include "bench/completion_client.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "bench/stream_client.h"

namespace winnow::bench {

class CompletionClient::Core {
 public:
  explicit Core(Options options)
      : parallel_(options.parallel),
        client_({.url = std::move(options.url),
                 .headers = std::move(options.headers),
                 .io_threads = options.io_threads,
                 .timeout_s = options.timeout_s}) {
    WINNOW_CHECK(parallel_ > 0, "{}", parallel_);
  }

  void submit(HttpRequest request, OnDone on_done) {
    const std::lock_guard lock(mutex_);
    ++num_open_;
    waiting_.push_back({std::move(request), std::move(on_done)});
    start_what_fits();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return num_open_ == 0; });
  }

  void cancel() {
    std::deque<Call> dropped;
    {
      const std::lock_guard lock(mutex_);
      dropped.swap(waiting_);
    }
    client_.cancel();
    for (Call& call : dropped) {
      Completion completion;
      completion.error = "cancelled";
      answer(std::move(completion), call.on_done);
    }
  }

 private:
  struct Call {
    HttpRequest request;
    OnDone on_done;
  };

  class Reader final : public StreamReader {
   public:
    Reader(Core& core, OnDone on_done) : core_(core), on_done_(std::move(on_done)) {}
    void on_start(int64_t now_ns) override { start_ns_ = now_ns; }
    void on_event(std::string_view /*data*/, int64_t /*received_ns*/) override {}
    void on_end(StreamEnd end) override {
      Completion completion;
      if (end.error.empty()) {
        completion = read_completion(end.reply.status, end.reply.body);
      } else {
        completion.status = end.reply.status;
        completion.error = std::move(end.error);
      }
      completion.seconds = static_cast<double>(end.end_ns - start_ns_) * 1e-9;
      core_.ended(std::move(completion), on_done_);
    }

   private:
    Core& core_;
    OnDone on_done_;
    int64_t start_ns_ = 0;
  };

  // With mutex_ held.
  void start_what_fits() {
    while (num_in_flight_ < parallel_ && !waiting_.empty()) {
      Call call = std::move(waiting_.front());
      waiting_.pop_front();
      ++num_in_flight_;
      client_.start(call.request, std::make_shared<Reader>(*this, std::move(call.on_done)));
    }
  }

  void ended(Completion completion, const OnDone& on_done) {
    {
      const std::lock_guard lock(mutex_);
      --num_in_flight_;
      start_what_fits();
    }
    answer(std::move(completion), on_done);
  }

  void answer(Completion completion, const OnDone& on_done) {
    {
      const std::lock_guard lock(done_mutex_);
      on_done(std::move(completion));
    }
    const std::lock_guard lock(mutex_);
    if (--num_open_ == 0) idle_.notify_all();
  }

  const int parallel_;
  std::mutex done_mutex_;  // one on_done at a time; mutex_ may be taken within, never around it
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Call> waiting_;
  int64_t num_in_flight_ = 0;
  int64_t num_open_ = 0;  // submitted and not answered
  StreamClient client_;   // last: its end waits for readers, which use what is above
};

CompletionClient::CompletionClient(Options options)
    : core_(std::make_unique<Core>(std::move(options))) {}

CompletionClient::~CompletionClient() {
  core_->cancel();
  core_->wait();
}

void CompletionClient::submit(std::string target, const json::Value& body, OnDone on_done) {
  core_->submit({.target = std::move(target), .body = json::dump(body)}, std::move(on_done));
}
void CompletionClient::wait() { core_->wait(); }
void CompletionClient::cancel() { core_->cancel(); }

}  // namespace winnow::bench
