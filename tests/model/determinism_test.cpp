// A row's bits depend on its own sequence and nothing else: not on chunks, cached prefixes,
// neighbours, page placement, threads, or what an earlier step left in the buffers. Faults B04,
// B10, B17, B37 (every layout, as a whole prompt, chunks, decode and mixed steps), B41, B46, B47.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "testing/loaded_fixture.h"

namespace winnow::model {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using testing::FixtureOptions;
using testing::LoadedFixture;

struct Setting {
  const char* fixture;
  Precision precision;
  LatentLayout latent;
  IndexKeyLayout index_key;
};

std::string name_of(const Setting& s) {
  if (s.precision == Precision::kReference) return std::string(s.fixture) + "_reference";
  return std::string(s.fixture) + "_" + layout::to_string(s.latent) + "_" +
         layout::to_string(s.index_key);
}

void PrintTo(const Setting& s, std::ostream* out) { *out << name_of(s); }

FixtureOptions options_of(const Setting& s, int threads = 1) {
  return {.precision = s.precision,
          .latent_layout = s.latent,
          .index_key_layout = s.index_key,
          .threads = threads};
}

std::vector<int32_t> random_ids(uint32_t seed, int count, int32_t vocab_size) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab_size);
  return ids;
}

// Pages of a pool in an order of their own.
std::vector<int32_t> shuffled_pages(uint32_t seed, int32_t begin, int32_t count) {
  std::vector<int32_t> pages = testing::first_pages(count);
  for (int32_t& page : pages) page += begin;
  std::shuffle(pages.begin(), pages.end(), std::mt19937(seed));
  return pages;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::span<const float> tail(const std::vector<float>& all, int64_t count) {
  return std::span(all).last(count);
}

class Determinism : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int kTokens = 53;  // no multiple of the page size 4
};

TEST_P(Determinism, ChunksOfAnySize) {
  LoadedFixture fixture(GetParam().fixture, options_of(GetParam()));
  const auto ids = random_ids(1, kTokens, fixture.config.vocab_size);
  const auto pages = testing::first_pages(16);
  const std::vector<float> whole = fixture.prefill(ids, pages, kTokens);
  for (const int32_t chunk : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 52}) {
    EXPECT_TRUE(same_bits(whole, fixture.prefill(ids, pages, chunk))) << "chunk " << chunk;
  }
}

TEST_P(Determinism, CachedPrefixOfAnyLength) {
  LoadedFixture fixture(GetParam().fixture, options_of(GetParam()));
  const int64_t vocab = fixture.config.vocab_size;
  const auto ids = random_ids(2, kTokens, fixture.config.vocab_size);
  const auto pages = testing::first_pages(16);
  const std::vector<float> whole = fixture.prefill(ids, pages, kTokens);
  for (int32_t cached = 0; cached < kTokens; ++cached) {
    const std::vector<float> rest = fixture.prefill(ids, pages, kTokens, cached);
    EXPECT_TRUE(same_bits(tail(whole, (kTokens - cached) * vocab), rest)) << "cached " << cached;
  }
  // All of it: the last row is computed again and appends nothing.
  const RowSlice slice{
      .tokens = ids, .start = kTokens - 1, .num_rows = 1, .write_from = kTokens, .pages = pages};
  EXPECT_TRUE(same_bits(tail(whole, vocab), fixture.run({&slice, 1})));
}

TEST_P(Determinism, NeighboursInTheBatch) {
  LoadedFixture fixture(GetParam().fixture, options_of(GetParam()));
  const int64_t vocab = fixture.config.vocab_size;
  const auto ids = random_ids(3, kTokens, fixture.config.vocab_size);
  const auto other = random_ids(4, 31, fixture.config.vocab_size);
  const auto third = random_ids(5, 9, fixture.config.vocab_size);
  const std::vector<float> alone = fixture.prefill(ids, testing::first_pages(16), kTokens);
  const auto pages = shuffled_pages(7, 0, 14), other_pages = shuffled_pages(8, 20, 8),
             third_pages = shuffled_pages(9, 40, 3);
  const RowSlice slices[] = {
      {.tokens = other, .num_rows = 31, .pages = other_pages},
      {.tokens = ids, .num_rows = kTokens, .pages = pages},
      {.tokens = third, .num_rows = 9, .pages = third_pages},
  };
  const std::vector<float> together = fixture.run(slices);
  EXPECT_TRUE(same_bits(alone, std::span(together).subspan(31 * vocab, kTokens * vocab)));

  // Decoding one token each, mixed with another sequence's prompt.
  const RowSlice mixed[] = {
      {.tokens = ids, .start = kTokens - 1, .num_rows = 1, .pages = pages},
      {.tokens = other, .num_rows = 31, .pages = other_pages},
      {.tokens = third, .start = 8, .num_rows = 1, .pages = third_pages},
  };
  EXPECT_TRUE(
      same_bits(tail(alone, vocab), std::span<const float>(fixture.run(mixed)).first(vocab)));
}

TEST_P(Determinism, OneThreadOrTwo) {
  LoadedFixture one(GetParam().fixture, options_of(GetParam(), 1));
  LoadedFixture two(GetParam().fixture, options_of(GetParam(), 2));
  const auto ids = random_ids(6, kTokens, one.config.vocab_size);
  const auto pages = testing::first_pages(16);
  EXPECT_TRUE(same_bits(one.prefill(ids, pages, kTokens), two.prefill(ids, pages, 10)));
}

constexpr Precision kDefault = Precision::kDefault;
INSTANTIATE_TEST_SUITE_P(
    Settings,
    Determinism,
    ::testing::Values(
        Setting{"tiny_v32", Precision::kReference, LatentLayout::kF32, IndexKeyLayout::kF32},
        Setting{"tiny_glm52", Precision::kReference, LatentLayout::kF32, IndexKeyLayout::kF32},
        Setting{"tiny_v32", kDefault, LatentLayout::kBf16_1152, IndexKeyLayout::kFp8_132},
        Setting{"tiny_v32", kDefault, LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132},
        Setting{"tiny_glm", kDefault, LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132},
        Setting{"tiny_glm", kDefault, LatentLayout::kFp8_644, IndexKeyLayout::kBf16_256},
        Setting{"tiny_glm52", kDefault, LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132},
        Setting{"tiny_glm52", kDefault, LatentLayout::kBf16_1152, IndexKeyLayout::kF32},
        Setting{"tiny_v3", kDefault, LatentLayout::kFp8_656, IndexKeyLayout::kNone},
        Setting{"tiny_v3", kDefault, LatentLayout::kFp8_644, IndexKeyLayout::kNone},
        Setting{"wide_glm_bf16", kDefault, LatentLayout::kFp8_656, IndexKeyLayout::kFp8_132},
        Setting{"wide_glm_bf16", kDefault, LatentLayout::kFp8_644, IndexKeyLayout::kFp8_132},
        Setting{"wide_glm_bf16", kDefault, LatentLayout::kFp8_576, IndexKeyLayout::kFp8_132}),
    [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace winnow::model
