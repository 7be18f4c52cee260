// The random numbers of Python's random.Random and of NumPy's legacy np.random, bit for bit, so
// that a seed gives the prompts, lengths, gaps and question orders that the Python tools give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace winnow::bench {

// MT19937, seeded in either of its two ways. std::mt19937 has no init_by_array.
class MersenneTwister {
 public:
  static MersenneTwister from_value(uint32_t seed);
  static MersenneTwister from_array(std::span<const uint32_t> key);  // key: at least one word

  uint32_t next();
  // 53 random bits in [0, 1), from two draws.
  double next_double();

 private:
  static constexpr size_t kWords = 624;

  MersenneTwister() = default;
  void refill();

  std::array<uint32_t, kWords> state_{};
  size_t next_word_ = kWords;
};

// random.Random(seed) for a seed >= 0.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  uint32_t getrandbits(int bits);  // 1 to 32
  // random.randrange(n): uniform in [0, n), n from 1 to 2^32 - 1.
  uint32_t below(uint32_t n);
  // random.randint(low, high): both ends included, high - low below 2^32 - 1.
  int64_t randint(int64_t low, int64_t high);
  double random() { return twister_.next_double(); }
  // random.sample(range(n), k), k <= n: k of n without replacement, in the order drawn.
  std::vector<size_t> sample(size_t n, size_t k);
  // random.choice(items) is items[below(size)].

  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) {
      std::swap(items[i], items[below(static_cast<uint32_t>(i) + 1)]);
    }
  }

 private:
  MersenneTwister twister_;
};

// np.random.seed(seed) and the module's functions, as they have been since NumPy 1.0.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed);

  // np.random.randint(low, high): uniform in [low, high), high - low at most 2^32. Nothing is
  // drawn where only one value is possible.
  int64_t randint(int64_t low, int64_t high);
  // np.random.exponential(scale)
  double exponential(double scale);
  // np.random.random_sample()
  double random() { return twister_.next_double(); }
  uint32_t next() { return twister_.next(); }

 private:
  MersenneTwister twister_;
};

}  // namespace winnow::bench
