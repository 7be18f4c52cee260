#include "server/worker_pool.h"

namespace winnow::server {

WorkerPool::WorkerPool(int num_threads, size_t queue_capacity) : jobs_(queue_capacity) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] {
      while (auto job = jobs_.pop()) (*job)();
    });
  }
}

WorkerPool::~WorkerPool() {
  jobs_.close();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace winnow::server
