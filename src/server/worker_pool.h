// A few threads over one bounded queue. Requests are parsed, rendered and tokenized on one pool,
// answers are detokenized and written on another, so neither stands in the I/O thread's way.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"

namespace winnow::server {

class WorkerPool {
 public:
  WorkerPool(int num_threads, size_t queue_capacity);
  ~WorkerPool();  // runs what is queued, then joins
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full. A job must not throw.
  bool try_run(std::function<void()> job) { return jobs_.try_push(std::move(job)); }

 private:
  BoundedQueue<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace winnow::server
