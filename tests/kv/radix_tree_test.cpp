#include "kv/radix_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace winnow::kv {
namespace {

using Tokens = std::vector<int32_t>;

Tokens iota(int32_t from, int32_t count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

// A pool, a tree, and what a finished sequence does with them.
struct Cache {
  PagePool pool;
  RadixTree tree;

  Cache(int32_t num_pages, int32_t page_size) : pool(num_pages), tree(pool, page_size) {}

  // Computes tokens on pages of its own and leaves them to the tree.
  std::vector<int32_t> put(const Tokens& tokens, const std::string& name_space = "") {
    const size_t page_size = static_cast<size_t>(tree.page_size());
    std::vector<int32_t> pages;
    for (size_t i = 0; i < (tokens.size() + page_size - 1) / page_size; ++i) {
      pages.push_back(pool.allocate());
    }
    tree.insert_prefix(name_space, tokens, pages, 0);
    tree.unlock(pages);
    return pages;
  }
  int32_t match(const Tokens& tokens, const std::string& name_space = "") {
    std::vector<int32_t> pages;
    const PrefixMatch match = tree.match_prefix(name_space, tokens, pages);
    return match.num_pages * tree.page_size() + match.copy_tokens;
  }
};

TEST(RadixTree, AHitIsExactToTheToken) {
  Cache cache(16, 4);
  const auto pages = cache.put(iota(0, 10));
  EXPECT_EQ(cache.tree.num_cached(), 3);
  for (int32_t n = 1; n <= 10; ++n) {
    std::vector<int32_t> found;
    const PrefixMatch match = cache.tree.match_prefix("", iota(0, n), found);
    EXPECT_EQ(match.num_pages, n / 4);
    EXPECT_EQ(match.copy_tokens, n % 4);
    EXPECT_EQ(found, Tokens(pages.begin(), pages.begin() + n / 4));
    EXPECT_EQ(match.copy_page, n % 4 == 0 ? -1 : pages[static_cast<size_t>(n / 4)]);
  }
  EXPECT_EQ(cache.match(iota(0, 20)), 10);
  EXPECT_EQ(cache.match(iota(1, 10)), 0);
  EXPECT_EQ(cache.tree.check_integrity(), "");
}

TEST(RadixTree, FindsTheLongestOfManySiblings) {
  Cache cache(64, 8);
  for (int32_t i = 0; i < 20; ++i) cache.put({1, 2, 3, i, i, i, i, i, 7});
  Tokens key = {1, 2, 3, 13, 13, 13, 99, 99, 99};
  EXPECT_EQ(cache.match(key), 6);
  key[3] = 99;
  EXPECT_EQ(cache.match(key), 3);
  key[3] = -5;
  EXPECT_EQ(cache.match(key), 3);
}

// Fault B44: sequences that diverge inside a page share no node, and each page counts once.
TEST(RadixTree, PagesThatDivergeInsideAreCountedOnce) {
  Cache cache(16, 4);
  cache.put(iota(0, 10));
  Tokens other = iota(0, 6);
  other.insert(other.end(), {90, 91, 92});
  cache.put(other);
  EXPECT_EQ(cache.tree.check_integrity(), "");
  EXPECT_EQ(cache.tree.num_cached(), 3 + 2);  // the first page is shared
  EXPECT_EQ(cache.tree.num_evictable(), 5);
  EXPECT_EQ(cache.pool.num_free(), 11);
  EXPECT_EQ(cache.match(other), 9);
}

// Fault B43: a prompt below a page, or of whole pages, keeps the accounts right.
TEST(RadixTree, ShortPromptsKeepTheAccounts) {
  for (const int32_t length : {1, 3, 4, 5, 8}) {
    Cache cache(8, 4);
    cache.put(iota(0, length));
    EXPECT_EQ(cache.tree.num_cached(), (length + 3) / 4);
    EXPECT_EQ(cache.tree.check_integrity(), "");
    EXPECT_EQ(cache.tree.evict(100), (length + 3) / 4);
    EXPECT_EQ(cache.pool.num_free(), 8);
    EXPECT_EQ(cache.tree.check_integrity(), "");
  }
}

TEST(RadixTree, ALongerPageReplacesAShorterOne) {
  Cache cache(8, 4);
  cache.put(iota(0, 2));
  cache.put(iota(0, 3));
  EXPECT_EQ(cache.tree.num_cached(), 1);
  cache.put(iota(0, 1));  // known already
  EXPECT_EQ(cache.tree.num_cached(), 1);
  EXPECT_EQ(cache.match(iota(0, 8)), 3);
  cache.put(iota(0, 6));
  EXPECT_EQ(cache.tree.num_cached(), 2);
  EXPECT_EQ(cache.match(iota(0, 8)), 6);
  EXPECT_EQ(cache.pool.num_free(), 6);
}

TEST(RadixTree, TwoWhoComputeTheSameShareOnePage) {
  Cache cache(8, 4);
  const Tokens tokens = iota(0, 8);
  std::vector<int32_t> first = {cache.pool.allocate(), cache.pool.allocate()};
  std::vector<int32_t> second = {cache.pool.allocate(), cache.pool.allocate()};
  cache.tree.insert_prefix("", tokens, first, 0);
  cache.tree.insert_prefix("", std::span(tokens).first(4), std::span(second).first(1), 0);
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(cache.pool.num_free(), 5);  // the second's copy of page 0 is free
  cache.tree.insert_prefix("", tokens, second, 1);
  EXPECT_EQ(second, first);
  EXPECT_EQ(cache.tree.num_evictable(), 0);
  cache.tree.unlock(first);
  EXPECT_EQ(cache.tree.evict(8), 0);
  cache.tree.unlock(second);
  EXPECT_EQ(cache.tree.check_integrity(), "");
  EXPECT_EQ(cache.tree.evict(8), 2);
}

TEST(RadixTree, EvictsTheLeastRecentlyUsedLeafFirst) {
  Cache cache(8, 2);
  cache.put({1, 1, 2, 2});
  cache.put({1, 1, 3, 3});
  cache.put({5, 5});
  cache.match({1, 1, 2, 2});
  EXPECT_EQ(cache.tree.evict(1), 1);
  EXPECT_EQ(cache.match({1, 1, 3, 3}), 2);
  EXPECT_EQ(cache.tree.evict(1), 1);
  EXPECT_EQ(cache.match({5, 5}), 0);
  EXPECT_EQ(cache.match({1, 1, 2, 2}), 4);
}

TEST(RadixTree, LockedPathsStay) {
  Cache cache(8, 2);
  cache.put({1, 1, 2, 2, 3, 3});
  std::vector<int32_t> pages;
  cache.tree.match_prefix("", Tokens{1, 1, 2, 2}, pages);
  cache.tree.lock(pages);
  EXPECT_EQ(cache.tree.num_evictable(), 1);
  EXPECT_EQ(cache.tree.evict(8), 1);
  EXPECT_EQ(cache.match({1, 1, 2, 2, 3, 3}), 4);
  cache.tree.unlock(pages);
  EXPECT_EQ(cache.tree.evict(8), 2);
}

TEST(RadixTree, NamespacesShareNothing) {
  Cache cache(8, 4);
  cache.put(iota(0, 6), "a");
  EXPECT_EQ(cache.match(iota(0, 6), "b"), 0);
  cache.put(iota(0, 6), "b");
  EXPECT_EQ(cache.tree.num_cached(), 4);
  EXPECT_EQ(cache.match(iota(0, 6), "a"), 6);
  EXPECT_EQ(cache.tree.evict(8), 4);
  EXPECT_EQ(cache.match(iota(0, 6), "a"), 0);
  EXPECT_EQ(cache.tree.check_integrity(), "");
}

// Fault B43, at large: sequences of few distinct tokens come, share, go and are evicted, and after
// each operation free + cached + held is the whole pool and every match is right.
void random_operations(int32_t page_size, int32_t num_pages, int32_t num_operations) {
  struct User {
    std::string name_space;
    Tokens tokens;
    std::vector<int32_t> pages;
    int32_t num_known;
  };
  Cache cache(num_pages, page_size);
  RadixTree& tree = cache.tree;
  std::vector<User> users;
  for (int32_t i = 0; i < num_operations; ++i) {
    const int what = *rc::gen::inRange(0, 10);
    if (what < 4) {
      User user;
      user.name_space = *rc::gen::element<std::string>("", "", "x");
      user.tokens = *rc::gen::resize(
          4 * page_size + 3,
          rc::gen::nonEmpty<Tokens>(rc::gen::container<Tokens>(rc::gen::inRange(0, 2))));
      const PrefixMatch match = tree.match_prefix(user.name_space, user.tokens, user.pages);
      user.num_known = match.num_pages;
      tree.lock(user.pages);
      const auto missing =
          static_cast<int32_t>((user.tokens.size() + page_size - 1) / page_size) - match.num_pages;
      if (missing <= cache.pool.num_free() + tree.num_evictable()) {
        tree.evict(missing - cache.pool.num_free());
        for (int32_t k = 0; k < missing; ++k) user.pages.push_back(cache.pool.allocate());
        RC_ASSERT(std::find(user.pages.begin(), user.pages.end(), -1) == user.pages.end());
        users.push_back(std::move(user));
      } else {
        tree.unlock(user.pages);
      }
    } else if (what < 6 && !users.empty()) {  // a chunk is done: whole pages go in
      User& user = users[*rc::gen::inRange<size_t>(0, users.size())];
      const auto whole = static_cast<int32_t>(user.tokens.size()) / page_size;
      const int32_t upto = *rc::gen::inRange(user.num_known, std::max(whole, user.num_known) + 1);
      tree.insert_prefix(user.name_space,
                         std::span(user.tokens).first(static_cast<size_t>(upto * page_size)),
                         std::span(user.pages).first(static_cast<size_t>(upto)), user.num_known);
      user.num_known = upto;
    } else if (what < 9 && !users.empty()) {  // the end, cached or not
      const size_t idx = *rc::gen::inRange<size_t>(0, users.size());
      User& user = users[idx];
      const bool keep = *rc::gen::inRange(0, 4) > 0;
      if (keep) tree.insert_prefix(user.name_space, user.tokens, user.pages, user.num_known);
      tree.unlock(user.pages);
      if (keep)
        RC_ASSERT(cache.match(user.tokens, user.name_space) ==
                  static_cast<int32_t>(user.tokens.size()));
      users.erase(users.begin() + static_cast<int64_t>(idx));
    } else {
      tree.evict(*rc::gen::inRange(0, 4));
    }
    const std::string wrong = tree.check_integrity();
    if (!wrong.empty()) RC_FAIL(wrong);
    std::vector<bool> held(static_cast<size_t>(num_pages));
    for (const User& user : users) {
      for (int32_t page : user.pages) held[static_cast<size_t>(page)] = true;
    }
    const auto num_held = std::count(held.begin(), held.end(), true);
    RC_ASSERT(cache.pool.num_free() + tree.num_evictable() + num_held == num_pages);
  }
  for (const User& user : users) tree.unlock(user.pages);
  tree.evict(num_pages);
  RC_ASSERT(cache.pool.num_free() == num_pages);
}

TEST(RadixTree, RandomOperationsKeepTheAccounts) {
  for (const int32_t page_size : {1, 2, 4, 7}) {
    EXPECT_TRUE(rc::check("random operations",
                          [&] { random_operations(page_size, *rc::gen::inRange(3, 40), 120); }));
  }
}

}  // namespace
}  // namespace winnow::kv
