#include "kv/radix_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace winnow::kv {
namespace {

size_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

bool is_prefix(std::span<const int32_t> prefix, std::span<const int32_t> of) {
  return prefix.size() <= of.size() && common_prefix(prefix, of) == prefix.size();
}

}  // namespace

RadixTree::RadixTree(PagePool& pool, int32_t page_size) : pool_(pool), page_size_(page_size) {
  WINNOW_CHECK(page_size > 0, "page_size {}", page_size);
  const auto num_pages = static_cast<size_t>(pool.num_pages());
  nodes_.resize(num_pages);
  for (Node& page : nodes_) page.children.reserve(1);  // most have no more: inserting takes nothing
  tokens_.resize(num_pages * static_cast<size_t>(page_size));
  candidates_.reserve(2 * num_pages + 1);
}

std::span<const int32_t> RadixTree::tokens_of(int32_t page) const {
  const auto begin = static_cast<size_t>(page) * static_cast<size_t>(page_size_);
  return {tokens_.data() + begin, static_cast<size_t>(node(page).num_tokens)};
}

bool RadixTree::is_evictable_leaf(int32_t page) const {
  return contains(page) && node(page).children.empty() && pool_.num_references(page) == 1;
}

size_t RadixTree::lower_bound(const Node& parent, std::span<const int32_t> key) const {
  const auto it = std::lower_bound(
      parent.children.begin(), parent.children.end(), key, [this](int32_t child, auto wanted) {
        const auto tokens = tokens_of(child);
        return std::lexicographical_compare(tokens.begin(), tokens.end(), wanted.begin(),
                                            wanted.end());
      });
  return static_cast<size_t>(it - parent.children.begin());
}

PrefixMatch RadixTree::match_prefix(std::string_view name_space,
                                    std::span<const int32_t> tokens,
                                    std::vector<int32_t>& pages) {
  PrefixMatch match;
  int32_t at = find_root(name_space);
  if (at == kNone) return match;
  ++time_;
  while (!tokens.empty()) {
    const auto key = tokens.first(std::min(tokens.size(), static_cast<size_t>(page_size_)));
    const auto& children = node(at).children;
    const size_t idx = lower_bound(node(at), key);
    if (idx < children.size() && key.size() == static_cast<size_t>(page_size_) &&
        is_prefix(key, tokens_of(children[idx]))) {
      at = children[idx];
      touch(at);
      pages.push_back(at);
      ++match.num_pages;
      tokens = tokens.subspan(key.size());
      continue;
    }
    for (size_t i = idx == 0 ? 0 : idx - 1; i < children.size() && i <= idx; ++i) {
      const auto n = static_cast<int32_t>(common_prefix(key, tokens_of(children[i])));
      if (n > match.copy_tokens) match = {match.num_pages, children[i], n};
    }
    break;
  }
  if (match.copy_page != kNone) touch(match.copy_page);
  return match;
}

void RadixTree::insert_prefix(std::string_view name_space,
                              std::span<const int32_t> tokens,
                              std::span<int32_t> pages,
                              int32_t num_known_pages) {
  const auto page_size = static_cast<size_t>(page_size_);
  const auto known = static_cast<size_t>(num_known_pages);
  WINNOW_CHECK((tokens.size() + page_size - 1) / page_size == pages.size(), "{} tokens, {} pages",
               tokens.size(), pages.size());
  if (known >= pages.size()) return;
  ++time_;
  int32_t parent = known == 0 ? open_root(name_space) : pages[known - 1];
  WINNOW_CHECK(is_root(parent) || contains(parent), "page {} is not in the tree", parent);
  for (size_t i = known; i < pages.size(); ++i) {
    const size_t begin = i * page_size;
    const auto key = tokens.subspan(begin, std::min(page_size, tokens.size() - begin));
    size_t idx = lower_bound(node(parent), key);
    const auto& children = node(parent).children;
    if (idx < children.size() && is_prefix(key, tokens_of(children[idx]))) {
      const int32_t present = children[idx];
      touch(present);
      if (key.size() < page_size) return;  // the tree knows these tokens, and maybe more
      if (present != pages[i]) {
        lock({&present, 1});
        unlock({&pages[i], 1});
        pages[i] = present;
      }
      parent = present;
      continue;
    }
    if (idx > 0 && is_prefix(tokens_of(children[idx - 1]), key)) {
      remove_leaf(children[--idx]);  // a part of what the new page holds
      // The parent's last child may have gone, and with it the namespace.
      if (i == 0 && known == 0) parent = open_root(name_space);
    }
    add_leaf(parent, idx, pages[i], key);
    parent = pages[i];
  }
}

void RadixTree::lock(std::span<const int32_t> pages) {
  for (int32_t page : pages) {
    if (contains(page) && pool_.num_references(page) == 1) --num_evictable_;
    pool_.retain(page);
  }
}

void RadixTree::unlock(std::span<const int32_t> pages) {
  for (int32_t page : pages) {
    pool_.release(page);
    if (contains(page) && pool_.num_references(page) == 1) {
      ++num_evictable_;
      offer_for_eviction(page);
    }
  }
}

int32_t RadixTree::evict(int32_t num_pages) {
  int32_t num_evicted = 0;
  while (num_evicted < num_pages && !candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    const Candidate candidate = candidates_.back();
    candidates_.pop_back();
    if (!is_evictable_leaf(candidate.page)) continue;
    if (node(candidate.page).last_used != candidate.last_used) continue;
    remove_leaf(candidate.page);
    ++num_evicted;
  }
  return num_evicted;
}

void RadixTree::add_leaf(int32_t parent,
                         size_t child_idx,
                         int32_t page,
                         std::span<const int32_t> key) {
  WINNOW_CHECK(!contains(page), "page {} is in the tree already", page);
  WINNOW_CHECK(is_root(parent) || node(parent).num_tokens == page_size_, "page {} of {} tokens",
               parent, node(parent).num_tokens);
  Node& leaf = node(page);
  leaf.parent = parent;
  leaf.num_tokens = static_cast<int32_t>(key.size());
  leaf.last_used = time_;
  std::copy(key.begin(), key.end(),
            tokens_.begin() + static_cast<int64_t>(page) * static_cast<int64_t>(page_size_));
  auto& children = node(parent).children;
  children.insert(children.begin() + static_cast<int64_t>(child_idx), page);
  pool_.retain(page);  // the caller's reference is there too, so it is not evictable yet
  ++num_cached_;
}

void RadixTree::remove_leaf(int32_t page) {
  WINNOW_CHECK(is_evictable_leaf(page), "page {} with {} references", page,
               pool_.num_references(page));
  const int32_t parent = node(page).parent;
  auto& siblings = node(parent).children;
  const size_t idx = lower_bound(node(parent), tokens_of(page));
  WINNOW_CHECK(idx < siblings.size() && siblings[idx] == page, "page {} below {}", page, parent);
  siblings.erase(siblings.begin() + static_cast<int64_t>(idx));
  node(page).parent = kNone;
  node(page).num_tokens = 0;
  --num_cached_;
  --num_evictable_;
  pool_.release(page);
  if (!siblings.empty()) return;
  if (is_root(parent)) {
    close_root(parent);
  } else {
    offer_for_eviction(parent);
  }
}

void RadixTree::touch(int32_t page) {
  node(page).last_used = time_;
  offer_for_eviction(page);
}

void RadixTree::offer_for_eviction(int32_t page) {
  if (!is_evictable_leaf(page)) return;
  if (candidates_.size() == candidates_.capacity()) {  // mostly stale by now
    candidates_.clear();
    for (int32_t p = 0; p < pool_.num_pages(); ++p) {
      if (is_evictable_leaf(p)) candidates_.push_back({node(p).last_used, p});
    }
    std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    return;
  }
  candidates_.push_back({node(page).last_used, page});
  std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
}

int32_t RadixTree::find_root(std::string_view name_space) const {
  const auto it = roots_.find(name_space);
  return it == roots_.end() ? kNone : it->second;
}

int32_t RadixTree::open_root(std::string_view name_space) {
  const int32_t found = find_root(name_space);
  if (found != kNone) return found;
  int32_t root = static_cast<int32_t>(nodes_.size());
  if (free_roots_.empty()) {
    nodes_.emplace_back();
  } else {
    root = free_roots_.back();
    free_roots_.pop_back();
  }
  roots_.emplace(name_space, root);
  return root;
}

void RadixTree::close_root(int32_t root) {
  std::erase_if(roots_, [root](const auto& entry) { return entry.second == root; });
  free_roots_.push_back(root);
}

std::string RadixTree::check_node(int32_t idx) const {
  const Node& parent = node(idx);
  for (size_t i = 0; i < parent.children.size(); ++i) {
    const int32_t child = parent.children[i];
    if (node(child).parent != idx) return fmt::format("page {} has another parent", child);
    if (i == 0) continue;
    const auto left = tokens_of(parent.children[i - 1]);
    const auto right = tokens_of(child);
    if (is_prefix(left, right) ||
        !std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end())) {
      return fmt::format("pages {} and {} are out of order", parent.children[i - 1], child);
    }
  }
  if (is_root(idx) || !contains(idx)) {
    return !is_root(idx) && !parent.children.empty()
               ? fmt::format("page {} is outside the tree and has children", idx)
               : "";
  }
  if (parent.num_tokens < 1 || parent.num_tokens > page_size_) {
    return fmt::format("page {} has {} tokens", idx, parent.num_tokens);
  }
  if (parent.num_tokens < page_size_ && !parent.children.empty()) {
    return fmt::format("page {} of {} tokens has children", idx, parent.num_tokens);
  }
  const int32_t references = pool_.num_references(idx);
  if (references < 1) return fmt::format("page {} is cached and free", idx);
  if (!is_root(parent.parent) && pool_.num_references(parent.parent) < references) {
    return fmt::format("page {} has more references than its parent", idx);
  }
  const auto& siblings = node(parent.parent).children;
  if (std::find(siblings.begin(), siblings.end(), idx) == siblings.end()) {
    return fmt::format("page {} is unknown to its parent", idx);
  }
  return "";
}

std::string RadixTree::check_integrity() const {
  int32_t num_cached = 0;
  int32_t num_evictable = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto idx = static_cast<int32_t>(i);
    if (std::string wrong = check_node(idx); !wrong.empty()) return wrong;
    if (is_root(idx) || !contains(idx)) continue;
    ++num_cached;
    if (pool_.num_references(idx) == 1) ++num_evictable;
  }
  if (num_cached != num_cached_) {
    return fmt::format("{} pages cached, {} counted", num_cached, num_cached_);
  }
  if (num_evictable != num_evictable_) {
    return fmt::format("{} pages evictable, {} counted", num_evictable, num_evictable_);
  }
  if (roots_.size() + free_roots_.size() + static_cast<size_t>(pool_.num_pages()) !=
      nodes_.size()) {
    return fmt::format("{} namespaces, {} free roots", roots_.size(), free_roots_.size());
  }
  return pool_.check_integrity();
}

}  // namespace winnow::kv
