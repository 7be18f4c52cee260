// np.random.default_rng(seed): NumPy's present generator, PCG64 seeded by a SeedSequence, bit for
// bit. python_random.h has the older two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace winnow::bench {

class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint32_t seed);

  // rng.random(): 53 random bits in [0, 1).
  double random();
  // rng.choice(len(shares), size=count, p=shares / sum(shares)); shares: at least one, none
  // negative, some above 0.
  std::vector<size_t> choice(std::span<const double> shares, size_t count);

 private:
  __extension__ using Word = unsigned __int128;
  void step();

  Word state_ = 0;
  Word increment_ = 0;
};

}  // namespace winnow::bench
