// A seeded generator with exact arithmetic: the same values on every machine and library.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/float_formats.h"

namespace winnow::testing {

class CaseRandom {
 public:
  explicit CaseRandom(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(limit));
  }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }  // [0, 1)
  // Close to a standard normal: four uniforms, scaled.
  float normal() {
    const float sum = (uniform() + uniform()) + (uniform() + uniform());
    return (sum - 2.0f) * 1.7320508f;
  }
  // Rounded to bf16, so that backends with bf16 activations see the same value.
  float bf16_normal() { return layout::round_to_bf16(normal()); }

  std::vector<float> bf16_normals(int64_t count, float factor = 1.0f) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = layout::round_to_bf16(normal() * factor);
    return values;
  }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (int64_t i = static_cast<int64_t>(values.size()) - 1; i > 0; --i) {
      std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(below(i + 1))]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace winnow::testing
