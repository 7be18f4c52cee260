#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace winnow::kv {
namespace {

TEST(PagePool, HandsOutEachPageOnce) {
  PagePool pool(3);
  std::set<int32_t> pages;
  for (int i = 0; i < 3; ++i) pages.insert(pool.allocate());
  EXPECT_EQ(pages, (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(pool.allocate(), -1);
  pool.retain(1);
  pool.release(1);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(1);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.check_integrity(), "");
}

TEST(PagePoolDeath, RefusesToFreeTwice) {
  PagePool pool(2);
  const int32_t page = pool.allocate();
  pool.release(page);
  EXPECT_DEATH(pool.release(page), "free already");
  EXPECT_DEATH(pool.retain(page), "is free");
}

}  // namespace
}  // namespace winnow::kv
