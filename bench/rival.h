// Another library's product y = x * W^T in fp32 or bf16, to compare ours with.
#pragma once

#include <cstdint>

namespace winnow::bench {

class Rival {
 public:
  virtual ~Rival() = default;
  // One product with the weight given to make_rival(); x [rows, in], y [rows, out], fp32.
  virtual void run(const float* x, float* y) = 0;
};

// Null where the library is not installed or cannot do it here. bf16: weight and x rounded to bf16.
Rival* make_rival(
    const float* weight, int64_t rows, int64_t in, int64_t out, bool bf16, int num_threads);

}  // namespace winnow::bench
