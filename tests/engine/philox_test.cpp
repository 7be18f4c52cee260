#include "engine/philox.h"

#include <gtest/gtest.h>

namespace winnow::engine {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that the authors' library is tested with.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformsFillTheUnitInterval) {
  int counts[10] = {};
  for (int64_t position = 0; position < 10000; ++position) {
    const double u = uniform_at(7, 0, position);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++counts[static_cast<int>(u * 10)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // 5 standard deviations
  EXPECT_NE(uniform_at(7, 0, 1), uniform_at(7, 1, 1));
  EXPECT_NE(uniform_at(7, 0, 1), uniform_at(8, 0, 1));
  EXPECT_NE(uniform_at(7, 0, 1), uniform_at(uint64_t{7} + (uint64_t{1} << 32), 0, 1));
}

}  // namespace
}  // namespace winnow::engine
