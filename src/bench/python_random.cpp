#include "bench/python_random.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "base/error.h"

namespace winnow::bench {

MersenneTwister MersenneTwister::from_value(uint32_t seed) {
  MersenneTwister twister;
  twister.state_[0] = seed;
  for (uint32_t i = 1; i < kWords; ++i) {
    const uint32_t last = twister.state_[i - 1];
    twister.state_[i] = 1812433253U * (last ^ (last >> 30)) + i;
  }
  return twister;
}

MersenneTwister MersenneTwister::from_array(std::span<const uint32_t> key) {
  WINNOW_CHECK(!key.empty(), "an empty key");
  MersenneTwister twister = from_value(19650218U);
  auto& state = twister.state_;
  size_t i = 1;
  auto step = [&] {
    if (++i < kWords) return;
    state[0] = state[kWords - 1];
    i = 1;
  };
  size_t j = 0;
  for (size_t n = std::max(kWords, key.size()); n > 0; --n) {
    const uint32_t mixed = (state[i - 1] ^ (state[i - 1] >> 30)) * 1664525U;
    state[i] = (state[i] ^ mixed) + key[j] + static_cast<uint32_t>(j);
    step();
    if (++j == key.size()) j = 0;
  }
  for (size_t n = kWords - 1; n > 0; --n) {
    const uint32_t mixed = (state[i - 1] ^ (state[i - 1] >> 30)) * 1566083941U;
    state[i] = (state[i] ^ mixed) - static_cast<uint32_t>(i);
    step();
  }
  state[0] = 0x80000000U;
  return twister;
}

void MersenneTwister::refill() {
  constexpr size_t kShift = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t bits = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kShift) % kWords] ^ (bits >> 1) ^ ((bits & 1) ? 0x9908b0dfU : 0U);
  }
  next_word_ = 0;
}

uint32_t MersenneTwister::next() {
  if (next_word_ == kWords) refill();
  uint32_t word = state_[next_word_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680U;
  word ^= (word << 15) & 0xefc60000U;
  return word ^ (word >> 18);
}

double MersenneTwister::next_double() {
  const uint32_t high = next() >> 5;
  const uint32_t low = next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

namespace {

// The seed's 32-bit words, the lowest first, no zeros on top.
MersenneTwister twister_of_seed(uint64_t seed) {
  const std::array<uint32_t, 2> words = {static_cast<uint32_t>(seed),
                                         static_cast<uint32_t>(seed >> 32)};
  return MersenneTwister::from_array({words.data(), words[1] == 0 ? 1U : 2U});
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : twister_(twister_of_seed(seed)) {}

uint32_t PythonRandom::getrandbits(int bits) {
  WINNOW_CHECK(bits >= 1 && bits <= 32, "{} bits", bits);
  return twister_.next() >> (32 - bits);
}

uint32_t PythonRandom::below(uint32_t n) {
  WINNOW_CHECK(n > 0, "no value below 0");
  const int bits = std::bit_width(n);
  uint32_t value = getrandbits(bits);
  while (value >= n) value = getrandbits(bits);
  return value;
}

int64_t PythonRandom::randint(int64_t low, int64_t high) {
  return low + below(static_cast<uint32_t>(high - low + 1));
}

std::vector<size_t> PythonRandom::sample(size_t n, size_t k) {
  WINNOW_CHECK(k <= n && n < (uint64_t{1} << 32), "sample {} of {}", k, n);
  size_t pool_limit = 21;  // where CPython thinks a list smaller than a set
  if (k > 5) {
    pool_limit += size_t{1} << (2 * static_cast<int>(std::ceil(std::log(3.0 * k) / std::log(4))));
  }
  std::vector<size_t> result(k);
  if (n <= pool_limit) {
    std::vector<size_t> pool(n);
    std::iota(pool.begin(), pool.end(), size_t{0});
    for (size_t i = 0; i < k; ++i) {
      const uint32_t j = below(static_cast<uint32_t>(n - i));
      result[i] = pool[j];
      pool[j] = pool[n - i - 1];
    }
    return result;
  }
  std::unordered_set<size_t> taken;
  for (size_t& item : result) {
    item = below(static_cast<uint32_t>(n));
    while (!taken.insert(item).second) item = below(static_cast<uint32_t>(n));
  }
  return result;
}

NumpyRandom::NumpyRandom(uint32_t seed) : twister_(MersenneTwister::from_value(seed)) {}

int64_t NumpyRandom::randint(int64_t low, int64_t high) {
  WINNOW_CHECK(low < high && high - low <= (int64_t{1} << 32), "randint({}, {})", low, high);
  const auto range = static_cast<uint32_t>(high - 1 - low);
  if (range == 0) return low;
  const uint32_t mask = 0xffffffffU >> std::countl_zero(range);
  uint32_t value = twister_.next() & mask;
  while (value > range) value = twister_.next() & mask;
  return low + value;
}

double NumpyRandom::exponential(double scale) {
  return -std::log(1.0 - twister_.next_double()) * scale;
}

}  // namespace winnow::bench
