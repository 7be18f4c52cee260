#include "base/thread_pool.h"

#include <algorithm>

namespace winnow {

namespace {

// About 40 us on current machines; longer than the serial gaps inside a step.
constexpr int kSpinRounds = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until the value differs from old; spins first, then sleeps in the kernel.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int round = 0; round < kSpinRounds; ++round) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  if (num_threads <= 0) {
    num_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  workers_.reserve(static_cast<size_t>(num_threads) - 1);
  for (int idx = 1; idx < num_threads; ++idx) {
    workers_.emplace_back([this, idx] { worker_loop(idx); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_items(int thread_idx) {
  for (;;) {
    const int64_t item_idx = next_item_.fetch_add(1, std::memory_order_relaxed);
    if (item_idx >= num_items_) return;
    call_(context_, item_idx, thread_idx);
  }
}

void ThreadPool::run(int64_t num_items, Call call, void* context) {
  if (workers_.empty() || num_items <= 1) {
    for (int64_t item_idx = 0; item_idx < num_items; ++item_idx) call(context, item_idx, 0);
    return;
  }
  call_ = call;
  context_ = context;
  num_items_ = num_items;
  next_item_.store(0, std::memory_order_relaxed);
  num_busy_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_items(0);
  for (uint32_t busy = num_busy_.load(std::memory_order_acquire); busy != 0;
       busy = num_busy_.load(std::memory_order_acquire)) {
    wait_for_change(num_busy_, busy);
  }
}

void ThreadPool::worker_loop(int thread_idx) {
  uint32_t seen = 0;
  for (;;) {
    wait_for_change(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_items(thread_idx);
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_busy_.notify_one();
  }
}

}  // namespace winnow
