// A sink that joins a request's events and lets the test wait for the end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace winnow::testing {

class CollectingSink final : public engine::TokenSink {
 public:
  void on_event(engine::TokenEvent event) override {
    {
      std::lock_guard lock(mutex_);
      ++num_events_;
      if (answer_.finish != engine::FinishReason::kNone) ++num_late_events_;
      auto ids = std::move(answer_.ids);
      auto logprobs = std::move(answer_.logprobs);
      auto prompt_logprobs = std::move(answer_.prompt_logprobs);
      ids.insert(ids.end(), event.ids.begin(), event.ids.end());
      for (auto& logprob : event.logprobs) logprobs.push_back(std::move(logprob));
      for (auto& logprob : event.prompt_logprobs) prompt_logprobs.push_back(std::move(logprob));
      answer_ = std::move(event);
      answer_.ids = std::move(ids);
      answer_.logprobs = std::move(logprobs);
      answer_.prompt_logprobs = std::move(prompt_logprobs);
    }
    changed_.notify_all();
  }

  // Everything so far as one event, once the request has ended; finish is kNone if it has not
  // within a minute.
  engine::TokenEvent wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1),
                      [&] { return answer_.finish != engine::FinishReason::kNone; });
    return answer_;
  }
  // Waits for so many ids, or the end.
  void wait_for_ids(size_t num_ids) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return answer_.ids.size() >= num_ids || answer_.finish != engine::FinishReason::kNone;
    });
  }
  bool ended() const {
    std::lock_guard lock(mutex_);
    return answer_.finish != engine::FinishReason::kNone;
  }
  int num_events() const {
    std::lock_guard lock(mutex_);
    return num_events_;
  }
  int num_late_events() const {  // after the end: must stay 0
    std::lock_guard lock(mutex_);
    return num_late_events_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  engine::TokenEvent answer_;
  int num_events_ = 0;
  int num_late_events_ = 0;
};

}  // namespace winnow::testing
