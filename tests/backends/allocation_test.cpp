// After prepare() no op allocates. One thread, so that all of an op's work is counted.
#include <gtest/gtest.h>

#include <vector>

#include "testing/allocation_counter.h"
#include "testing/prepared_cpu.h"

namespace winnow::testing {
namespace {

template <typename Op>
int64_t allocations_of(Op&& op) {
  const int64_t before = num_allocations();
  op();
  return num_allocations() - before;
}

TEST(CpuAllocations, CounterCounts) {
  EXPECT_GT(allocations_of([] { std::vector<int> v(100); }), 0);
}

TEST(CpuAllocations, LinearFeedForwardAndRouter) {
  const auto backend = prepared_cpu(1);
  const int64_t hidden = 512;
  for (const int32_t rows : {1, 4, 700}) {
    const StoredWeight w = make_weight(DType::kE4m3, 700, hidden, 1);
    const StoredWeight square = make_weight(DType::kE4m3, hidden, hidden, 1);
    const ops::MlpWeights mlp{square.view(), square.view(), square.view()};
    const std::vector<ops::MlpWeights> experts(8, mlp);
    const StoredWeight gate = make_weight(DType::kBf16, 8, hidden, 2);
    const std::vector<float> x(static_cast<size_t>(rows * hidden), 0.5f), ones(hidden, 1.0f);
    std::vector<float> y(static_cast<size_t>(rows * 700)), residual = x;
    std::vector<float> weights(static_cast<size_t>(rows * 2));
    std::vector<int32_t> ids(static_cast<size_t>(rows * 2));
    EXPECT_EQ(allocations_of([&] {
                backend->linear({rows, x.data(), w.view(), true, true, y.data()});
                backend->mlp({rows, x.data(), mlp, true, y.data()});
                backend->rms_norm(
                    {rows, hidden, residual.data(), hidden, nullptr, ones.data(), 1e-5f, y.data()});
                backend->route_experts({rows, x.data(), gate.view(), nullptr, 1, 1, 2, true, 1.0f,
                                        ids.data(), weights.data()});
                backend->moe({rows, x.data(), ids.data(), weights.data(), 2, experts.data(), 8,
                              &mlp, true, y.data()});
              }),
              0);
  }
}

TEST(CpuAllocations, AttentionAndIndexer) {
  const auto backend = prepared_cpu(1);
  for (const AttentionCase& c : attention_cases()) {
    AttentionData data = make_attention(c);
    const ops::BatchRows view = data.rows.view();
    std::vector<float> out(data.q_latent.size());
    EXPECT_EQ(
        allocations_of([&] {
          backend->sparse_mla({&view, data.q_latent.data(), data.q_rope.data(), data.slots.data(),
                               data.lens.data(), c.topk, c.num_heads, data.softmax_scale,
                               data.cache.view(data.cache.bytes.data()), out.data(), nullptr});
          backend->dense_mla({&view, data.q_latent.data(), data.q_rope.data(), c.num_heads,
                              data.softmax_scale, data.cache.view(data.cache.bytes.data()),
                              out.data(), nullptr});
        }),
        0);
  }
  for (const IndexCase& c : index_cases()) {
    IndexData data = make_index(c);
    const ops::BatchRows view = data.rows.view();
    std::vector<int32_t> slots(static_cast<size_t>(view.num_rows * c.topk)), lens(slots.size());
    EXPECT_EQ(
        allocations_of([&] {
          backend->select_tokens({&view, data.q.data(), c.query_format, data.head_weights.data(),
                                  c.index_n_heads, data.cache.view(data.cache.bytes.data()), c.topk,
                                  slots.data(), lens.data()});
        }),
        0);
  }
}

// B53: the score buffer never exceeds its budget, whatever rows times context would ask for.
TEST(CpuAllocations, IndexLogitsStayInTheirBudget) {
  backends::Workspace workspace;
  ops::ModelShape shape = case_shape();
  shape.max_rows = 8192;
  shape.max_context = 131072;
  shape.index_logits_budget_bytes = int64_t{8} << 20;
  workspace.size_for(shape, 1);
  EXPECT_LE(static_cast<int64_t>(workspace.index_logits.size()) * 4,
            shape.index_logits_budget_bytes);
}

}  // namespace
}  // namespace winnow::testing
