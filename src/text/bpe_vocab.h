// The tokens of a byte-level BPE model: bytes of an id, id of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text {

// Ids may have gaps. Bounds what a broken file can make us allocate.
inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;

// What a table needs of a word. Up to 8 bytes the key is the word itself, so that most look-ups
// touch one slot and compare one number; beyond that it is a hash.
struct WordKey {
  static constexpr size_t kMaxExactBytes = 8;
  explicit WordKey(std::string_view word);

  uint64_t key = 0;
  uint32_t size = 0;   // bytes
  uint64_t mixed = 0;  // for slot numbers: low bits well spread
};

class BpeVocab {
 public:
  struct Token {
    int32_t id;
    std::string bytes;
  };
  BpeVocab() : BpeVocab(std::vector<Token>()) {}
  // Ids distinct, 0 to kMaxTokenId.
  explicit BpeVocab(std::vector<Token> tokens);

  int32_t size() const { return static_cast<int32_t>(starts_.size()) - 1; }  // largest id + 1
  // Empty for an id that is not there.
  std::string_view bytes(int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const auto i = static_cast<size_t>(id);
    return std::string_view(storage_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }

  // The id among those indexed that has these bytes; -1 where none.
  int32_t find(std::string_view word, const WordKey& key) const;
  // Makes find() know exactly these ids.
  void index(const std::vector<int32_t>& ids);

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t size = 0;
    int32_t id = -1;
  };
  std::string storage_;
  std::vector<uint32_t> starts_;  // of each id in storage_; one more at the end
  std::vector<Slot> slots_;       // open addressing, a power of two, at most half full
};

}  // namespace winnow::text
