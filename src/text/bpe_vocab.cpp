#include "text/bpe_vocab.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace winnow::text {

BpeVocab::BpeVocab(std::vector<Token> tokens) {
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return a.id < b.id; });
  for (const Token& token : tokens) {
    WINNOW_CHECK(token.id >= 0 && token.id <= kMaxTokenId, "id {}", token.id);
    starts_.resize(static_cast<size_t>(token.id) + 1, static_cast<uint32_t>(storage_.size()));
    storage_ += token.bytes;
  }
  starts_.push_back(static_cast<uint32_t>(storage_.size()));
  index({});
}

WordKey::WordKey(std::string_view word) : size(static_cast<uint32_t>(word.size())) {
  const auto load = [&word](size_t at, size_t count) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, word.data() + at, count);
    return bytes;
  };
  // Two loads that may overlap: no two words of one size share a key.
  if (size > kMaxExactBytes) {
    key = XXH3_64bits(word.data(), word.size());
  } else if (size >= 4) {
    key = load(0, 4) | load(size - 4, 4) << 32;
  } else if (size >= 2) {
    key = load(0, 2) | load(size - 2, 2) << 16;
  } else if (size == 1) {
    key = load(0, 1);
  }
  mixed = (key ^ size) * 0x9E3779B97F4A7C15u;
  mixed ^= mixed >> 32;
}

int32_t BpeVocab::find(std::string_view word, const WordKey& key) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = key.mixed & mask; slots_[i].id >= 0; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.key != key.key || slot.size != key.size) continue;
    if (key.size <= WordKey::kMaxExactBytes || bytes(slot.id) == word) return slot.id;
  }
  return -1;
}

void BpeVocab::index(const std::vector<int32_t>& ids) {
  slots_.assign(std::bit_ceil(ids.size() * 2 + 1), {});
  const size_t mask = slots_.size() - 1;
  for (const int32_t id : ids) {
    const WordKey key(bytes(id));
    size_t i = key.mixed & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = {key.key, key.size, id};
  }
}

}  // namespace winnow::text
