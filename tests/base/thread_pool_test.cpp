#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

namespace winnow {
namespace {

TEST(ThreadPool, EveryItemOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.num_threads(), threads);
    for (const int64_t items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(items));
      std::atomic<bool> bad_thread{false};
      pool.parallel_for(items, [&](int64_t item, int thread) {
        seen[static_cast<size_t>(item)].fetch_add(1);
        if (thread < 0 || thread >= threads) bad_thread = true;
      });
      for (const auto& count : seen) ASSERT_EQ(count.load(), 1);
      EXPECT_FALSE(bad_thread);
    }
  }
}

// Loops back to back and after pauses long enough for the workers to fall asleep.
TEST(ThreadPool, ManyLoopsAndSleeps) {
  ThreadPool pool(3);
  std::vector<int64_t> partial(static_cast<size_t>(pool.num_threads()) * 8);
  int64_t expected = 0;
  for (int64_t round = 0; round < 3000; ++round) {
    if (round % 1000 == 999) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.parallel_for(round % 5, [&](int64_t item, int thread) {
      partial[static_cast<size_t>(thread) * 8] += item + 1;
    });
    expected += (round % 5) * (round % 5 + 1) / 2;
  }
  EXPECT_EQ(std::accumulate(partial.begin(), partial.end(), int64_t{0}), expected);
}

TEST(ThreadPool, ZeroMeansOneForEachCore) {
  ThreadPool pool(0);
  EXPECT_GE(pool.num_threads(), 1);
}

}  // namespace
}  // namespace winnow
