// Byte-level BPE of one word at a time: merges the pair of lowest rank, leftmost first, until none
// is left. Thread-safe; what changes lies in the caller's BpeScratch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bpe_merges.h"
#include "text/bpe_vocab.h"

namespace winnow::text {

// Reusable memory of one encoding call, and the words it has met. Words are remembered by where
// they stand in the text and where their ids stand in the output, so both must stay in place:
// the text's memory until forget(), the output at least for what was appended.
class BpeScratch {
 public:
  void forget() { seen_.clear(); }

 private:
  friend class Bpe;
  static constexpr size_t kSeenWords = 4096;  // direct-mapped: bounded, no chains to fill
  static constexpr size_t kMaxSeenBytes = 64;
  struct Seen {
    const char* word = nullptr;
    uint32_t bytes = 0;
    uint32_t num_ids = 0;
    size_t first_id = 0;  // index in the output
  };
  std::vector<Seen> seen_;
  // Of a long word's symbols, linked by index.
  std::vector<int32_t> ids_;
  std::vector<uint32_t> previous_, next_, ranks_;
  std::vector<int32_t> results_;
  std::vector<uint64_t> heap_;  // rank << 32 | position
};

struct BpeModel {
  BpeVocab vocab;
  BpeMerges merges;
  std::array<int32_t, 256> byte_ids{};  // -1: dropped; only bytes that UTF-8 never has
  // Ids that a whole word may become without any merging (tokenizer.json's ignore_merges; always
  // so in tiktoken). Words whose merges end in one token are found anyway.
  std::vector<int32_t> whole_words;
};

class Bpe {
 public:
  explicit Bpe(BpeModel model);

  // Appends the ids of word (not empty). O(n log n) in its bytes; no recursion; on the stack a
  // fixed small amount.
  void encode_word(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  const BpeVocab& vocab() const { return vocab_; }

 private:
  void merge(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void merge_short(std::string_view word, std::vector<int32_t>& out) const;
  void merge_long(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void update_rank(BpeScratch& scratch, uint32_t at) const;

  BpeVocab vocab_;
  BpeMerges merges_;
  std::array<int32_t, 256> byte_ids_;
};

}  // namespace winnow::text
