#include "bench/numpy_generator.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace winnow::bench {

namespace {

constexpr int kShift = 16;

// One hash of a word; every call changes the constant.
uint32_t hashed(uint32_t value, uint32_t& constant, uint32_t factor) {
  value ^= constant;
  constant *= factor;
  value *= constant;
  return value ^ (value >> kShift);
}

uint32_t mixed(uint32_t x, uint32_t y) {
  const uint32_t word = 0xca01f9ddU * x - 0x4973f715U * y;
  return word ^ (word >> kShift);
}

// SeedSequence(seed).generate_state(4, np.uint64)
std::array<uint64_t, 4> state_of_seed(uint32_t seed) {
  std::array<uint32_t, 4> pool = {seed, 0, 0, 0};
  uint32_t constant = 0x43b0d7e5U;
  constexpr uint32_t kEntropyFactor = 0x931e8875U;
  for (uint32_t& word : pool) word = hashed(word, constant, kEntropyFactor);
  for (size_t from = 0; from < pool.size(); ++from) {
    for (size_t to = 0; to < pool.size(); ++to) {
      if (from == to) continue;
      pool[to] = mixed(pool[to], hashed(pool[from], constant, kEntropyFactor));
    }
  }
  std::array<uint64_t, 4> state{};
  constant = 0x8b51f9ddU;
  for (size_t i = 0; i < 2 * state.size(); ++i) {
    const uint64_t word = hashed(pool[i % pool.size()], constant, 0x58f38dedU);
    state[i / 2] |= word << (32 * (i % 2));
  }
  return state;
}

}  // namespace

NumpyGenerator::NumpyGenerator(uint32_t seed) {
  const std::array<uint64_t, 4> words = state_of_seed(seed);
  increment_ = (((Word{words[2]} << 64) | words[3]) << 1) | 1;
  step();
  state_ += (Word{words[0]} << 64) | words[1];
  step();
}

void NumpyGenerator::step() {
  constexpr Word kFactor = (Word{2549297995355413924U} << 64) | 4865540595714422341U;
  state_ = state_ * kFactor + increment_;
}

double NumpyGenerator::random() {
  step();
  const auto folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const uint64_t bits = std::rotr(folded, static_cast<int>(state_ >> 122));
  return static_cast<double>(bits >> 11) / 9007199254740992.0;
}

std::vector<size_t> NumpyGenerator::choice(std::span<const double> shares, size_t count) {
  double sum = 0;
  for (const double share : shares) sum += share;
  WINNOW_CHECK(sum > 0, "no share above 0");
  std::vector<double> bounds;
  double bound = 0;
  for (const double share : shares) bounds.push_back(bound += share / sum);
  for (double& b : bounds) b /= bound;
  std::vector<size_t> chosen(count);
  for (size_t& item : chosen) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end(), random());
    item = static_cast<size_t>(above - bounds.begin());
  }
  return chosen;
}

}  // namespace winnow::bench
