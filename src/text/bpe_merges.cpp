#include "text/bpe_merges.h"

#include <bit>

namespace winnow::text {

BpeMerges::BpeMerges(const std::vector<Merge>& merges)
    : slots_(std::bit_ceil(merges.size() * 2 + 1)) {
  for (const Merge& merge : merges) {
    const uint64_t key = key_of(merge.left, merge.right);
    size_t i = slot_of(key);
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask();
    slots_[i] = {key, {merge.rank, merge.result}};
  }
}

}  // namespace winnow::text
