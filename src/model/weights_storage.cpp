#include "model/weights_storage.h"

#include "layout/kv_layout.h"

namespace winnow::model {

namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kChunkBytes = int64_t{16} << 20;
// Larger pieces get a buffer of their own: a chunk's end would waste too much.
constexpr int64_t kOwnBufferBytes = kChunkBytes / 8;

}  // namespace

const void* WeightStorage::place(const void* from_host, int64_t bytes) {
  const int64_t padded = layout::ceil_div(bytes, kAlignment) * kAlignment;
  std::byte* to = nullptr;
  if (padded >= kOwnBufferBytes) {
    buffers_.push_back(backend_.allocate(padded));
    to = buffers_.back().as<std::byte>();
  } else {
    if (padded > rest_bytes_) {
      buffers_.push_back(backend_.allocate(kChunkBytes));
      next_ = buffers_.back().as<std::byte>();
      rest_bytes_ = kChunkBytes;
    }
    to = next_;
    next_ += padded;
    rest_bytes_ -= padded;
  }
  backend_.upload(to, from_host, bytes);
  used_bytes_ += padded;
  return to;
}

}  // namespace winnow::model
