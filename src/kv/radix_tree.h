// The prefix cache: a radix tree over token ids whose digit is one page of tokens.
//
// A node is a page, and its id is the page's id, so the tree needs no memory of its own beyond
// per-page arrays, and no page can stand in two nodes (fault B44). Children of a node diverge
// inside their page; they are kept sorted by tokens, so the child with the longest common prefix
// is a neighbour of where the key would stand: a hit is exact to the token, the part of a page
// being copied by the caller. Only a leaf may hold fewer tokens than a page, and no page's tokens
// are a prefix of a sibling's.
//
// References: the tree holds one of each page in it, and each user one of every page on its path.
// So a page with one reference has no user anywhere below it, and can be evicted leaf by leaf.
// All releases of pages go through unlock(), which sees when a page becomes evictable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/page_pool.h"

namespace winnow::kv {

struct PrefixMatch {
  int32_t num_pages = 0;    // whole pages, appended to the caller's list
  int32_t copy_page = -1;   // the page whose first copy_tokens tokens go on from there, or -1
  int32_t copy_tokens = 0;  // < page_size, or the rest of the key
};

class RadixTree {
 public:
  // pool must outlive the tree.
  RadixTree(PagePool& pool, int32_t page_size);

  // The longest cached prefix of tokens inside a namespace. Appends its whole pages to pages; takes
  // no references: lock() them before anything else is called. copy_page may be evicted at any
  // time, but its content stays until the page is written.
  PrefixMatch match_prefix(std::string_view name_space,
                           std::span<const int32_t> tokens,
                           std::vector<int32_t>& pages);

  // Offers pages that hold the keys of tokens; the caller owns a reference of each. The first
  // num_known_pages are in the tree already (from match_prefix or an earlier call). Where the tree
  // has a page of the same tokens, pages[i] is replaced by it and the caller's reference moves
  // along. tokens may end inside a page only if nobody will write to that page any more.
  void insert_prefix(std::string_view name_space,
                     std::span<const int32_t> tokens,
                     std::span<int32_t> pages,
                     int32_t num_known_pages);

  void lock(std::span<const int32_t> pages);
  // Gives back one reference of each page, in the tree or not.
  void unlock(std::span<const int32_t> pages);

  // Frees up to num_pages pages, least recently used leaves first; returns how many.
  int32_t evict(int32_t num_pages);

  int32_t num_cached() const { return num_cached_; }        // pages in the tree
  int32_t num_evictable() const { return num_evictable_; }  // of them without a user
  bool contains(int32_t page) const { return nodes_[static_cast<size_t>(page)].parent != kNone; }
  int32_t page_size() const { return page_size_; }

  // "" when everything agrees, else what is wrong. O(pages).
  std::string check_integrity() const;

 private:
  static constexpr int32_t kNone = -1;

  // Indices below num_pages are pages; the roots of the namespaces follow.
  struct Node {
    int32_t parent = kNone;  // kNone: not in the tree, or a root
    int32_t num_tokens = 0;  // of its page
    uint64_t last_used = 0;
    std::vector<int32_t> children;  // sorted by their pages' tokens
  };
  // May be stale: it counts only if the node is still an evictable leaf used last at that time.
  struct Candidate {
    uint64_t last_used;
    int32_t page;
    bool operator>(const Candidate& other) const {
      return last_used != other.last_used ? last_used > other.last_used : page > other.page;
    }
  };
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Node& node(int32_t idx) { return nodes_[static_cast<size_t>(idx)]; }
  const Node& node(int32_t idx) const { return nodes_[static_cast<size_t>(idx)]; }
  std::span<const int32_t> tokens_of(int32_t page) const;
  bool is_root(int32_t idx) const { return idx >= pool_.num_pages(); }
  bool is_evictable_leaf(int32_t page) const;
  // Index in children of the first whose tokens are not below key.
  size_t lower_bound(const Node& parent, std::span<const int32_t> key) const;
  int32_t find_root(std::string_view name_space) const;
  int32_t open_root(std::string_view name_space);
  void close_root(int32_t root);
  void add_leaf(int32_t parent, size_t child_idx, int32_t page, std::span<const int32_t> key);
  void remove_leaf(int32_t page);
  void touch(int32_t page);
  void offer_for_eviction(int32_t page);
  std::string check_node(int32_t idx) const;

  PagePool& pool_;
  const int32_t page_size_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;  // [num_pages, page_size]
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> roots_;
  std::vector<int32_t> free_roots_;
  std::vector<Candidate> candidates_;  // a heap, the least recently used on top
  uint64_t time_ = 0;                  // counts uses
  int32_t num_cached_ = 0;
  int32_t num_evictable_ = 0;
};

}  // namespace winnow::kv
