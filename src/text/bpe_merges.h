// Which neighbouring tokens merge, in what order, into what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace winnow::text {

class BpeMerges {
 public:
  struct Merge {
    int32_t left;
    int32_t right;
    uint32_t rank;  // lower merges first
    int32_t result;
  };
  static constexpr uint32_t kNever = UINT32_MAX;  // the rank of a pair that does not merge
  struct Found {
    uint32_t rank = kNever;
    int32_t result = -1;
  };

  BpeMerges() : slots_(1) {}
  // Of two merges of one pair the later counts. Ids at most kMaxTokenId.
  explicit BpeMerges(const std::vector<Merge>& merges);

  Found find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t i = slot_of(key);; i = (i + 1) & mask()) {
      if (slots_[i].key == key) return slots_[i].found;
      if (slots_[i].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Found found;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  size_t mask() const { return slots_.size() - 1; }
  size_t slot_of(uint64_t key) const {
    // Fibonacci hashing: the product's upper bits are the well-mixed ones.
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask();
  }

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

}  // namespace winnow::text
