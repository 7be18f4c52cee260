// A fixed set of workers for data-parallel loops of one caller at a time. Nothing is allocated per
// loop. Idle workers spin for a few dozen microseconds (the gap between two ops of a step) and then
// sleep, so that an idle server uses no CPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace winnow {

class ThreadPool {
 public:
  // num_threads counts the caller: 1 = no worker threads, 0 = one for each core.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(item_idx, thread_idx) for each item_idx in [0, num_items), in no fixed order;
  // 0 <= thread_idx < num_threads(). Returns when all are done. body must not throw.
  template <typename Body>
  void parallel_for(int64_t num_items, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        num_items,
        [](void* context, int64_t item_idx, int thread_idx) {
          (*static_cast<Plain*>(context))(item_idx, thread_idx);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t item_idx, int thread_idx);

  void run(int64_t num_items, Call call, void* context);
  void take_items(int thread_idx);
  void worker_loop(int thread_idx);

  std::vector<std::thread> workers_;
  Call call_ = nullptr;  // the current loop; published by generation_
  void* context_ = nullptr;
  int64_t num_items_ = 0;
  alignas(64) std::atomic<int64_t> next_item_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> num_busy_{0};  // workers that have not finished the loop
  std::atomic<bool> stop_{false};
};

}  // namespace winnow
