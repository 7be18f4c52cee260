// Where the pages lie changes nothing: not beyond 2 GiB (fault B55), not after a pool of another
// page size in the same process (B32).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "model/cache_views.h"
#include "testing/loaded_fixture.h"

namespace winnow::model {
namespace {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using testing::FixtureOptions;
using testing::LoadedFixture;

// Address space alone: pages that nothing touches take no memory.
Buffer reserve(int64_t bytes) {
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WINNOW_CHECK(data != MAP_FAILED, "no address space for {} bytes", bytes);
  return {data, bytes, [bytes](void* p) { ::munmap(p, static_cast<size_t>(bytes)); }};
}

std::vector<int32_t> random_ids(int count, int32_t vocab_size) {
  std::mt19937 random(11);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab_size);
  return ids;
}

class LargePool : public ::testing::TestWithParam<LatentLayout> {};

TEST_P(LargePool, PagesBeyondTwoGibibytesAreLikeAnyOther) {
  constexpr int32_t kPageSize = 64, kTokens = 100;
  LoadedFixture fixture("wide_glm_bf16", {.precision = Precision::kDefault,
                                          .latent_layout = GetParam(),
                                          .page_size = kPageSize,
                                          .num_pages = 4});
  const auto ids = random_ids(kTokens, fixture.config.vocab_size);
  const std::vector<float> want = fixture.prefill(ids, testing::first_pages(2), kTokens);

  const auto border = [](int64_t page_bytes) {  // the page that the 2^31st byte lies in
    return static_cast<int32_t>((int64_t{1} << 31) / page_bytes);
  };
  const int32_t latent_border = border(fixture.plan.latent.page_bytes());
  const int32_t key_border = border(fixture.plan.index_key.page_bytes());
  const int32_t num_pages = 2 * std::max(latent_border, key_border) + 2;
  fixture.storage = std::make_unique<kv::KvStorage>(fixture.plan, num_pages, reserve);
  for (const int32_t page : {latent_border, key_border, 2 * latent_border, num_pages - 1}) {
    const std::vector<int32_t> pages = {page - 1, page};
    EXPECT_EQ(fixture.prefill(ids, pages, 37), want) << "page " << page;
    // A copy of the second page, and the last row over it.
    copy_page_tokens(*fixture.backend, *fixture.storage, page, 5, kPageSize);
    const std::vector<int32_t> copied = {page - 1, 5};
    const std::vector<float> last = fixture.prefill(ids, copied, 1, kTokens - 1);
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), want.rbegin())) << "page " << page;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         LargePool,
                         ::testing::Values(LatentLayout::kBf16_1152,
                                           LatentLayout::kFp8_656,
                                           LatentLayout::kFp8_644,
                                           LatentLayout::kFp8_576),
                         [](const auto& info) { return layout::to_string(info.param); });

// One backend that was prepared for pages of 64 tokens (as when memory is sized), then serves pages
// of 4, and of 64 again.
TEST(PageSize, IsThePoolsOwn) {
  LoadedFixture fixture("tiny_glm", {.precision = Precision::kDefault, .page_size = 64});
  const auto ids = random_ids(70, fixture.config.vocab_size);
  const std::vector<float> want = fixture.prefill(ids, testing::first_pages(2), 70);
  for (const int32_t page_size : {4, 64, 7}) {
    const kv::CachePlan plan = plan_cache(fixture.config, fixture.numerics, page_size);
    const int32_t num_pages = 40;
    const DecoderLimits limits{
        .max_rows = 128, .max_logit_rows = 128, .max_context = num_pages * page_size};
    fixture.decoder = std::make_unique<Decoder>(fixture.config, fixture.numerics, fixture.weights,
                                                plan, limits, *fixture.backend);
    fixture.storage = std::make_unique<kv::KvStorage>(
        plan, num_pages, [&](int64_t bytes) { return fixture.backend->allocate(bytes); });
    fixture.rows = std::make_unique<StepRows>(limits.max_rows, 16, limits.max_context, page_size,
                                              *fixture.backend);
    std::vector<int32_t> pages = testing::first_pages(num_pages);
    std::reverse(pages.begin(), pages.end());
    EXPECT_EQ(fixture.prefill(ids, pages, 33), want) << "pages of " << page_size;
  }
}

}  // namespace
}  // namespace winnow::model
