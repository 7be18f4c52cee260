// Memory of a backend handed out in pieces, so that thousands of small tensors are few allocations.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/backend.h"
#include "tensor/buffer.h"

namespace winnow::model {

class WeightStorage {
 public:
  explicit WeightStorage(ops::Backend& backend) : backend_(backend) {}

  // Copies bytes from host memory into the backend; 256-byte aligned, never freed before take().
  const void* place(const void* from_host, int64_t bytes);

  int64_t used_bytes() const { return used_bytes_; }
  std::vector<Buffer> take() { return std::move(buffers_); }

 private:
  ops::Backend& backend_;
  std::vector<Buffer> buffers_;
  std::byte* next_ = nullptr;  // free rest of the shared chunk
  int64_t rest_bytes_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace winnow::model
