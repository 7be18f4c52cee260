#include "bench/load_generator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace winnow::bench {

namespace {

constexpr std::chrono::milliseconds kLookEvery{200};

constexpr double kLatest_s = 1e9;  // thirty years: nanoseconds still hold it

using SteadyTime = std::chrono::steady_clock::time_point;

int64_t as_ns(SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

class Load {
 public:
  Load(StreamClient& client, std::vector<PlannedRequest> requests, const LoadOptions& options)
      : client_(client), requests_(std::move(requests)), options_(options) {
    for (const PlannedRequest& request : requests_) {
      first_records_.push_back(num_records_);
      num_records_ += request.num_turns();
    }
    records_.resize(num_records_);
  }

  std::vector<RequestRecord> run() {
    const SteadyTime start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < requests_.size(); ++i) {
      const SteadyTime due =
          start + std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::duration<double>(std::min(requests_[i].due_s, kLatest_s)));
      records_[first_records_[i]].due_ns = as_ns(due);
      wait_until([&] { return stopped() || std::chrono::steady_clock::now() >= due; }, due);
      wait_until([&] { return stopped() || may_send(); }, SteadyTime::max());
      if (stopped()) {
        for (size_t r = first_records_[i]; r < num_records_; ++r) records_[r].interrupted = true;
        break;
      }
      progress_.started.fetch_add(1);
      send(i, 0, std::move(requests_[i].body));
    }
    wait_until([&] { return stopped() || num_in_flight() == 0; }, SteadyTime::max());
    if (stopped()) client_.cancel();
    client_.wait();
    return std::move(records_);
  }

 private:
  class Reader final : public StreamReader {
   public:
    Reader(Load& load, size_t request, size_t turn)
        : load_(load),
          request_(request),
          turn_(turn),
          record_(load.record(request, turn)),
          events_(load.options_.events, record_) {}

    void on_start(int64_t now_ns) override { record_.start_ns = now_ns; }

    void on_event(std::string_view data, int64_t received_ns) override {
      const size_t before = record_.events.size();
      events_.on_event(data, received_ns);
      if (record_.events.size() > before) {
        load_.progress_.tokens.fetch_add(record_.events.back().num_tokens,
                                         std::memory_order_relaxed);
      }
    }

    void on_end(StreamEnd end) override {
      record_.end_ns = end.end_ns;
      record_.interrupted = !end.error.empty() && load_.stopped();
      if (!end.error.empty()) {
        record_.error = std::move(end.error);
      } else if (end.reply.content_type.starts_with("text/event-stream") &&
                 end.reply.status == 200) {
        events_.on_stream_end();
      } else {
        events_.on_body(end.reply.status, end.reply.body, end.end_ns);
      }
      if (!record_.ok()) load_.progress_.failed.fetch_add(1);
      load_.turn_ended(request_, turn_);
    }

   private:
    Load& load_;
    const size_t request_;
    const size_t turn_;
    RequestRecord& record_;
    EventReader events_;
  };

  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  bool may_send() const {
    return options_.max_concurrency <= 0 || num_in_flight() < options_.max_concurrency;
  }
  int64_t num_in_flight() const { return progress_.started - progress_.done; }

  RequestRecord& record(size_t i, size_t turn) { return records_[first_records_[i] + turn]; }

  void send(size_t i, size_t turn, std::string body) {
    const PlannedRequest& request = requests_[i];
    record(i, turn).prompt_len =
        turn == 0 ? request.prompt_len : request.later_prompt_lens[turn - 1];
    record(i, turn).output_len = request.output_len;
    client_.start({.target = options_.target, .body = std::move(body)},
                  std::make_shared<Reader>(*this, i, turn));
  }

  // On an I/O thread: the conversation's next turn, or its place is free.
  void turn_ended(size_t i, size_t turn) {
    const RequestRecord& ended = record(i, turn);
    const bool last = turn + 1 == requests_[i].num_turns();
    if (!last && ended.ok() && !stopped()) {
      record(i, turn + 1).due_ns = ended.end_ns;
      send(i, turn + 1, requests_[i].next_body(ended.text));
      return;
    }
    for (size_t rest = turn + 1; rest < requests_[i].num_turns(); ++rest) {
      RequestRecord& left = record(i, rest);
      left.due_ns = left.start_ns = left.end_ns = ended.end_ns;
      left.interrupted = stopped();
      left.error = "a turn before it failed";
      if (!stopped()) progress_.failed.fetch_add(1);
    }
    progress_.done.fetch_add(1);
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  }

  // Wakes for answers, at the time, and to show progress.
  template <typename Condition>
  void wait_until(const Condition& condition, SteadyTime time) {
    std::unique_lock lock(mutex_);
    while (!condition()) {
      const SteadyTime next_look = std::max(shown_, std::chrono::steady_clock::now()) + kLookEvery;
      changed_.wait_until(lock, std::min(time, next_look));
      if (!options_.show || std::chrono::steady_clock::now() < shown_ + kLookEvery) continue;
      shown_ = std::chrono::steady_clock::now();
      lock.unlock();
      options_.show(progress_);
      lock.lock();
    }
  }

  StreamClient& client_;
  std::vector<PlannedRequest> requests_;
  const LoadOptions& options_;
  std::vector<size_t> first_records_;  // of each request
  size_t num_records_ = 0;
  std::vector<RequestRecord> records_;  // a reader writes its own; its size does not change
  LoadProgress progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  SteadyTime shown_{};
};

}  // namespace

std::vector<RequestRecord> run_load(StreamClient& client,
                                    std::vector<PlannedRequest> requests,
                                    const LoadOptions& options) {
  return Load(client, std::move(requests), options).run();
}

}  // namespace winnow::bench
