#include "model/weights.h"

#include <gtest/gtest.h>

#include "testing/memory_backend.h"
#include "testing/paths.h"

namespace winnow::model {
namespace {

ModelWeights load(const std::string& folder,
                  ops::Backend& backend,
                  const LoadOptions& options = {}) {
  Progress silent(Progress::Style::kSilent);
  return load_weights(load_config(folder), std::make_shared<const Checkpoint>(folder), backend,
                      options, silent);
}

class FixtureWeights : public ::testing::TestWithParam<const char*> {};

// The host path points into the file, the device path copies: the values are the same.
TEST_P(FixtureWeights, MappedAndUploadedAgree) {
  const std::string folder = testing::data_path(GetParam());
  const ModelConfig config = load_config(folder);
  testing::MemoryBackend host(true), device(false);
  const ModelWeights mapped = load(folder, host), uploaded = load(folder, device);
  EXPECT_GT(mapped.mapped_bytes, 0);
  EXPECT_EQ(uploaded.mapped_bytes, 0);
  ASSERT_EQ(mapped.layers.size(), config.layers.size());
  auto same = [](const ops::LinearWeight& a, const ops::LinearWeight& b) {
    ASSERT_EQ(a.out_features, b.out_features);
    ASSERT_EQ(a.dtype, b.dtype);
    ASSERT_NE(a.data, b.data);
    EXPECT_EQ(0, std::memcmp(a.data, b.data, a.out_features * a.in_features * bytes_of(a.dtype)));
  };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerWeights &a = mapped.layers[i], &b = uploaded.layers[i];
    same(a.q_b_proj, b.q_b_proj);
    same(a.w_uk, b.w_uk);
    same(a.w_uv, b.w_uv);
    same(a.o_proj, b.o_proj);
    EXPECT_EQ(a.indexer.has_value(), config.layers[i].owns_indexer);
    EXPECT_EQ(a.moe.has_value(), config.layers[i].is_moe);
    EXPECT_EQ(a.mlp.has_value(), !config.layers[i].is_moe);
    if (a.moe) {
      ASSERT_EQ(a.moe->experts.size(), static_cast<size_t>(config.n_routed_experts));
      same(a.moe->experts.back().down, b.moe->experts.back().down);
      same(a.moe->shared_experts->up, b.moe->shared_experts->up);
    }
    for (int32_t c = 0; c < config.hidden_size; ++c) {
      EXPECT_EQ(a.input_layernorm[c], b.input_layernorm[c]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    FixtureWeights,
    ::testing::Values("tiny_v3", "tiny_v32", "tiny_glm", "tiny_glm52", "wide_glm_bf16"));

// Nope rows of 24 and value rows of 32 in one head: the transpose and the split by hand.
TEST(Weights, KvBIsSplitPerHeadAndTransposed) {
  const std::string folder = testing::data_path("tiny_glm");
  testing::MemoryBackend host(true);
  const ModelWeights weights = load(folder, host);
  const CheckpointTensor& kv_b =
      *weights.checkpoint->find("model.layers.2.self_attn.kv_b_proj.weight");
  const auto* source = reinterpret_cast<const float*>(kv_b.data());
  const auto* uk = static_cast<const float*>(weights.layers[2].w_uk.data);
  const auto* uv = static_cast<const float*>(weights.layers[2].w_uv.data);
  const int heads = 4, nope = 24, v_dim = 32, latent = 32;
  for (int h = 0; h < heads; ++h) {
    for (int c = 0; c < latent; ++c) {
      for (int n = 0; n < nope; ++n) {
        ASSERT_EQ(uk[(h * latent + c) * nope + n], source[(h * (nope + v_dim) + n) * latent + c]);
      }
      for (int v = 0; v < v_dim; ++v) {
        ASSERT_EQ(uv[(h * v_dim + v) * latent + c],
                  source[(h * (nope + v_dim) + nope + v) * latent + c]);
      }
    }
  }
}

}  // namespace
}  // namespace winnow::model
