#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace winnow::text {
namespace {

constexpr size_t kShortBytes = 48;  // up to here moving an array beats keeping a heap
constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kNever = BpeMerges::kNever;

}  // namespace

Bpe::Bpe(BpeModel model)
    : vocab_(std::move(model.vocab)), merges_(std::move(model.merges)), byte_ids_(model.byte_ids) {
  // A word that merges into one token is found by one look-up instead; so every token whose own
  // bytes merge back into it may stand in the index beside whole_words.
  std::vector<bool> indexed(static_cast<size_t>(vocab_.size()));
  for (const int32_t id : model.whole_words) indexed[static_cast<size_t>(id)] = true;
  BpeScratch scratch;
  std::vector<int32_t> ids, merged;
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    if (!indexed[static_cast<size_t>(id)] && !vocab_.bytes(id).empty()) {
      merged.clear();
      merge(vocab_.bytes(id), scratch, merged);
      if (merged.size() != 1 || merged[0] != id) continue;
    } else if (!indexed[static_cast<size_t>(id)]) {
      continue;
    }
    ids.push_back(id);
  }
  vocab_.index(ids);
}

void Bpe::encode_word(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  const WordKey key(word);
  if (const int32_t id = vocab_.find(word, key); id >= 0) {
    out.push_back(id);
    return;
  }
  if (word.size() > BpeScratch::kMaxSeenBytes) {
    merge(word, scratch, out);
    return;
  }
  if (scratch.seen_.empty()) scratch.seen_.resize(BpeScratch::kSeenWords);
  auto& seen = scratch.seen_[key.mixed % BpeScratch::kSeenWords];
  if (seen.bytes == word.size() && std::equal(word.begin(), word.end(), seen.word)) {
    for (size_t i = 0; i < seen.num_ids; ++i) out.push_back(out[seen.first_id + i]);
    return;
  }
  const size_t first_id = out.size();
  merge(word, scratch, out);
  seen = {word.data(), static_cast<uint32_t>(word.size()),
          static_cast<uint32_t>(out.size() - first_id), first_id};
}

void Bpe::merge(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  if (word.size() <= kShortBytes) {
    merge_short(word, out);
  } else {
    merge_long(word, scratch, out);
  }
}

void Bpe::merge_short(std::string_view word, std::vector<int32_t>& out) const {
  std::array<int32_t, kShortBytes> ids;
  std::array<BpeMerges::Found, kShortBytes> pairs;  // [i]: of i and i + 1
  size_t count = 0;
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) ids[count++] = id;
  }
  if (count == 0) return;
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_.find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNever) break;
    ids[best] = pairs[best].result;
    std::copy(&ids[best] + 2, ids.data() + count, &ids[best] + 1);
    --count;
    if (best + 1 < count) {
      std::copy(&pairs[best] + 2, pairs.data() + count, &pairs[best] + 1);
      pairs[best] = merges_.find(ids[best], ids[best + 1]);
    }
    if (best > 0) pairs[best - 1] = merges_.find(ids[best - 1], ids[best]);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
}

void Bpe::update_rank(BpeScratch& s, uint32_t at) const {
  BpeMerges::Found found;
  if (s.next_[at] != kNone) found = merges_.find(s.ids_[at], s.ids_[s.next_[at]]);
  s.ranks_[at] = found.rank;
  s.results_[at] = found.result;
  if (found.rank != kNever) s.heap_.push_back(static_cast<uint64_t>(found.rank) << 32 | at);
}

// The heap holds (rank, position) of pairs; one whose rank is no longer that of its position is
// out of date and skipped. Every merge pushes at most two, so 3n entries at most.
void Bpe::merge_long(std::string_view word, BpeScratch& s, std::vector<int32_t>& out) const {
  WINNOW_CHECK(word.size() < kNone, "word of {} bytes", word.size());
  s.ids_.clear();
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) s.ids_.push_back(id);
  }
  const auto count = static_cast<uint32_t>(s.ids_.size());
  if (count == 0) return;
  s.previous_.resize(count);
  s.next_.resize(count);
  s.ranks_.resize(count);
  s.results_.resize(count);
  s.heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    s.previous_[i] = i - 1;  // kNone for the first
    s.next_[i] = i + 1 < count ? i + 1 : kNone;
  }
  for (uint32_t i = 0; i < count; ++i) update_rank(s, i);
  std::make_heap(s.heap_.begin(), s.heap_.end(), std::greater<>());
  const auto push_rank = [&](uint32_t at) {
    const size_t before = s.heap_.size();
    update_rank(s, at);
    if (s.heap_.size() != before) std::push_heap(s.heap_.begin(), s.heap_.end(), std::greater<>());
  };
  while (!s.heap_.empty()) {
    std::pop_heap(s.heap_.begin(), s.heap_.end(), std::greater<>());
    const uint64_t top = s.heap_.back();
    s.heap_.pop_back();
    const auto at = static_cast<uint32_t>(top);
    if (s.ranks_[at] != top >> 32) continue;
    const uint32_t gone = s.next_[at];
    s.ids_[at] = s.results_[at];
    s.ranks_[gone] = kNever;
    s.next_[at] = s.next_[gone];
    if (s.next_[at] != kNone) s.previous_[s.next_[at]] = at;
    push_rank(at);
    if (s.previous_[at] != kNone) push_rank(s.previous_[at]);
  }
  for (uint32_t i = 0; i != kNone; i = s.next_[i]) out.push_back(s.ids_[i]);
}

}  // namespace winnow::text
