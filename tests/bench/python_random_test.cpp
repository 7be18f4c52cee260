// Values printed by CPython 3.11's random and NumPy's np.random.
#include "bench/python_random.h"

#include <gtest/gtest.h>

#include <cmath>

#include <numeric>

#include "bench/numpy_generator.h"

namespace winnow::bench {
namespace {

using Indices = std::vector<size_t>;

TEST(PythonRandom, BitsOfSmallAndLargeSeeds) {
  PythonRandom zero(0);
  for (const uint32_t expected : {3626764237U, 1654615998U, 3255389356U, 3823568514U}) {
    EXPECT_EQ(zero.getrandbits(32), expected);
  }
  PythonRandom large((uint64_t{1} << 40) + 7);  // two words of key
  for (const uint32_t expected : {2635837658U, 3209733218U, 3500038837U}) {
    EXPECT_EQ(large.getrandbits(32), expected);
  }
  EXPECT_EQ(large.random(), 0.937932416386988);
  EXPECT_EQ(large.randint(3, 9), 8);
}

TEST(PythonRandom, OrderAndPermutationsOfGpqaWithNumExamples) {
  PythonRandom random(0);
  const Indices rows = random.sample(198, 198);
  EXPECT_EQ(Indices(rows.begin(), rows.begin() + 12),
            (Indices{98, 194, 107, 10, 66, 130, 124, 103, 77, 122, 91, 149}));
  EXPECT_EQ(Indices(rows.end() - 3, rows.end()), (Indices{172, 59, 92}));
  std::vector<Indices> permutations;
  for (int i = 0; i < 198; ++i) permutations.push_back(random.sample(4, 4));
  const std::vector<Indices> first = {{1, 0, 3, 2}, {0, 2, 1, 3}, {0, 1, 2, 3},
                                      {2, 1, 3, 0}, {0, 1, 3, 2}, {0, 2, 1, 3}};
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(permutations[i], first[i]) << i;
  EXPECT_EQ(permutations.back(), (Indices{0, 2, 3, 1}));
}

TEST(PythonRandom, PermutationsOfGpqaInFileOrder) {
  PythonRandom random(0);
  for (const Indices& expected : std::vector<Indices>{
           {3, 1, 0, 2}, {3, 1, 2, 0}, {2, 3, 0, 1}, {2, 0, 3, 1}, {1, 3, 0, 2}, {2, 1, 0, 3}}) {
    EXPECT_EQ(random.sample(4, 4), expected);
  }
}

TEST(PythonRandom, SamplesFromAPoolAndFromASet) {
  PythonRandom random(7);
  EXPECT_EQ(random.sample(1000, 5), (Indices{331, 970, 154, 404, 666}));
  const Indices many = random.sample(1000, 30);
  EXPECT_EQ(Indices(many.begin(), many.begin() + 8), (Indices{49, 74, 840, 548, 96, 374, 596, 59}));
  EXPECT_EQ(random.sample(21, 5), (Indices{18, 12, 1, 7, 20}));  // the largest pool
  EXPECT_EQ(random.sample(22, 5), (Indices{17, 4, 9, 13, 3}));   // the smallest set
}

TEST(PythonRandom, Shuffles) {
  std::vector<int> items(10);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> other = items;
  PythonRandom(42).shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{7, 3, 2, 8, 5, 6, 9, 4, 0, 1}));
  PythonRandom(1).shuffle(other);
  EXPECT_EQ(other, (std::vector<int>{6, 8, 9, 7, 5, 3, 0, 4, 1, 2}));
}

std::vector<int64_t> draw(NumpyRandom& random, int64_t low, int64_t high, int count) {
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(random.randint(low, high));
  return values;
}

TEST(NumpyRandom, LengthsOfTheServingBenchmark) {
  NumpyRandom whole(42);
  EXPECT_EQ(draw(whole, 1, 1025, 6), (std::vector<int64_t>{103, 436, 861, 271, 107, 72}));
  EXPECT_EQ(draw(whole, 1, 1025, 6), (std::vector<int64_t>{701, 21, 615, 122, 467, 215}));
  NumpyRandom half(42);
  EXPECT_EQ(draw(half, 512, 1025, 6), (std::vector<int64_t>{614, 947, 782, 618, 583, 532}));
  NumpyRandom one(1);
  EXPECT_EQ(draw(one, 1, 1025, 6), (std::vector<int64_t>{38, 236, 909, 73, 768, 906}));
}

TEST(NumpyRandom, DrawsNothingWhereThereIsNoChoice) {
  NumpyRandom random(42);
  EXPECT_EQ(draw(random, 1024, 1025, 12), std::vector<int64_t>(12, 1024));
  NumpyRandom same = random;
  EXPECT_EQ(same.next(), 1608637542U);
  EXPECT_EQ(draw(random, 0, 151552, 4), (std::vector<int64_t>{121958, 146867, 131932, 103694}));
}

TEST(NumpyRandom, PoissonGaps) {
  NumpyRandom random(42);
  for (const double expected : {0.058658511, 0.376265179, 0.164593212, 0.114117819}) {
    EXPECT_NEAR(random.exponential(1.0 / 8), expected, 5e-10);
  }
}

// Values of NumPy 2.4: np.random.default_rng(seed).random(4).
TEST(NumpyGenerator, BitsOfTheSeeds) {
  const auto expect = [](uint32_t seed, std::initializer_list<double> values) {
    NumpyGenerator random(seed);
    for (const double value : values) EXPECT_EQ(random.random(), value) << seed;
  };
  expect(0, {0.6369616873214543, 0.2697867137638703, 0.04097352393619469, 0.016527635528529094});
  expect(42, {0.7739560485559633, 0.4388784397520523, 0.8585979199113825, 0.6973680290593639});
  expect(4294967295U,
         {0.2519435680449965, 0.21906579628685663, 0.28728472043517017, 0.6189813025326831});
}

TEST(NumpyGenerator, ChoosesByShare) {
  const auto zipf = [](int count, double alpha) {
    std::vector<double> shares;
    for (int rank = 1; rank <= count; ++rank) shares.push_back(1 / std::pow(rank, alpha));
    return shares;
  };
  EXPECT_EQ(NumpyGenerator(42).choice(zipf(8, 1.2), 24),
            (std::vector<size_t>{3, 1, 4, 2, 0, 7, 3, 3, 0, 1, 0, 6,
                                 2, 4, 1, 0, 1, 0, 4, 2, 3, 0, 7, 5}));
  EXPECT_EQ(NumpyGenerator(7).choice(zipf(64, 0.8), 12),
            (std::vector<size_t>{16, 46, 30, 2, 3, 42, 0, 35, 32, 8, 3, 2}));
}

}  // namespace
}  // namespace winnow::bench
