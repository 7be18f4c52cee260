#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "layout/float_formats.h"
#include "layout/kv_layout.h"
#include "model/weights_manifest.h"
#include "testing/checkpoint_editor.h"
#include "testing/errors.h"
#include "testing/memory_backend.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using testing::CheckpointEditor;
using testing::EditableTensor;
using testing::error_of;
using testing::expect_says;

const std::string kAttention = "model.layers.1.self_attn.";

ModelWeights load(const std::string& folder,
                  ops::Backend& backend,
                  const LoadOptions& options = {}) {
  Progress silent(Progress::Style::kSilent);
  return load_weights(load_config(folder), std::make_shared<const Checkpoint>(folder), backend,
                      options, silent);
}

WeightInventory check(const std::string& folder) {
  ModelWeights shapes;
  const ModelConfig config = load_config(folder);
  const std::vector<WeightSlot> slots = make_slots(config, shapes);
  return check_tensors(config, Checkpoint(folder), slots);
}

void for_each_mlp(const ops::MlpWeights& mlp,
                  const std::function<void(const ops::LinearWeight&)>& see) {
  see(mlp.gate);
  see(mlp.up);
  see(mlp.down);
}

void for_each_linear(const ModelWeights& weights,
                     const std::function<void(const ops::LinearWeight&)>& see) {
  see(weights.embed_tokens);
  see(weights.lm_head);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto* w : {&layer.q_a_proj, &layer.q_b_proj, &layer.kv_a_proj_with_mqa, &layer.w_uk,
                          &layer.w_uv, &layer.o_proj}) {
      see(*w);
    }
    if (layer.indexer) {
      see(layer.indexer->wq_b);
      see(layer.indexer->wk);
      see(layer.indexer->weights_proj);
    }
    if (layer.mlp) for_each_mlp(*layer.mlp, see);
    if (layer.moe) {
      see(layer.moe->gate);
      for (const auto& expert : layer.moe->experts) for_each_mlp(expert, see);
      if (layer.moe->shared_experts) for_each_mlp(*layer.moe->shared_experts, see);
    }
  }
}

std::vector<float> to_floats(const ops::LinearWeight& w) {
  std::vector<float> values(static_cast<size_t>(w.out_features * w.in_features));
  for (size_t i = 0; i < values.size(); ++i) {
    if (w.dtype == DType::kF32) values[i] = static_cast<const float*>(w.data)[i];
    if (w.dtype == DType::kBf16) {
      values[i] = layout::bf16_to_f32(static_cast<const uint16_t*>(w.data)[i]);
    }
    if (w.dtype == DType::kF16) {
      values[i] = layout::f16_to_f32(static_cast<const uint16_t*>(w.data)[i]);
    }
  }
  return values;
}

// A checkpoint of tests/data in a folder of its own, to be changed before it is loaded.
class EditedWeights : public ::testing::Test {
 protected:
  explicit EditedWeights(const char* name = "tiny_glm")
      : editor_(testing::data_path(name)), host_(true) {}

  const std::string& written() {
    editor_.write(folder_.path());
    return folder_.path();
  }
  ModelWeights load_written(const LoadOptions& options = {}) {
    return load(written(), host_, options);
  }
  std::string refusal() {
    const std::string& path = written();
    return error_of([&] { load(path, host_); });
  }
  // Replaces a weight by e4m3 codes with these scales, one a block.
  void quantise(const std::string& name, const std::function<float(int64_t, int64_t)>& scale_of) {
    EditableTensor& tensor = editor_.tensors.at(name);
    const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
    const int64_t row_blocks = layout::ceil_div(rows, 128),
                  col_blocks = layout::ceil_div(cols, 128);
    std::vector<float> codes(static_cast<size_t>(rows * cols)), scales;
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<float>(i % 15) - 7;
    for (int64_t r = 0; r < row_blocks; ++r) {
      for (int64_t c = 0; c < col_blocks; ++c) scales.push_back(scale_of(r, c));
    }
    tensor = EditableTensor::e4m3({rows, cols}, codes);
    editor_.tensors[scale_name(name)] = EditableTensor::f32({row_blocks, col_blocks}, scales);
  }

  testing::TempFolder folder_;
  CheckpointEditor editor_;
  testing::MemoryBackend host_;
};

class FixtureWeights : public ::testing::TestWithParam<const char*> {};

// The host path points into the file, the device path copies: the values are the same, and nothing
// stays as it was allocated (fault B79: fresh memory is NaN here).
TEST_P(FixtureWeights, MappedAndUploadedAgree) {
  const std::string folder = testing::data_path(GetParam());
  const ModelConfig config = load_config(folder);
  testing::MemoryBackend host(true), device(false, 0xff);
  const ModelWeights mapped = load(folder, host), uploaded = load(folder, device);
  EXPECT_GT(mapped.mapped_bytes, 0);
  EXPECT_EQ(uploaded.mapped_bytes, 0);
  std::vector<const ops::LinearWeight*> all;
  for_each_linear(mapped, [&](const ops::LinearWeight& w) { all.push_back(&w); });
  size_t i = 0;
  for_each_linear(uploaded, [&](const ops::LinearWeight& w) {
    const ops::LinearWeight& twin = *all[i++];
    ASSERT_EQ(w.dtype, twin.dtype);
    ASSERT_NE(w.data, twin.data);
    const auto bytes = static_cast<size_t>(w.out_features * w.in_features * bytes_of(w.dtype));
    ASSERT_EQ(0, std::memcmp(w.data, twin.data, bytes));
    for (float value : to_floats(w)) ASSERT_FALSE(std::isnan(value));
  });
  for (size_t l = 0; l < config.layers.size(); ++l) {
    const LayerWeights& layer = uploaded.layers[l];
    EXPECT_EQ(layer.indexer.has_value(), config.layers[l].owns_indexer);
    EXPECT_EQ(layer.moe.has_value(), config.layers[l].is_moe);
    EXPECT_EQ(layer.mlp.has_value(), !config.layers[l].is_moe);
    for (int32_t c = 0; c < config.hidden_size; ++c) {
      ASSERT_EQ(layer.input_layernorm[c], mapped.layers[l].input_layernorm[c]);
      ASSERT_FALSE(std::isnan(layer.post_attention_layernorm[c]));
    }
    for (int32_t c = 0; c < config.q_lora_rank; ++c)
      ASSERT_FALSE(std::isnan(layer.q_a_layernorm[c]));
    for (int32_t c = 0; c < config.kv_lora_rank; ++c) {
      ASSERT_FALSE(std::isnan(layer.kv_a_layernorm[c]));
    }
    if (layer.indexer) {
      for (int32_t c = 0; c < config.index_head_dim; ++c) {
        ASSERT_FALSE(std::isnan(layer.indexer->k_norm_weight[c]));
        ASSERT_FALSE(std::isnan(layer.indexer->k_norm_bias[c]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    FixtureWeights,
    ::testing::Values("tiny_v3", "tiny_v32", "tiny_glm", "tiny_glm52", "wide_glm_bf16"),
    [](const auto& info) { return std::string(info.param); });

// Nope rows of 24 and value rows of 32 in one head: the transpose and the split by hand.
TEST_F(EditedWeights, KvBIsSplitPerHeadAndTransposed) {
  const ModelWeights weights = load_written();
  const CheckpointTensor& kv_b = *weights.checkpoint->find(kAttention + "kv_b_proj.weight");
  const auto* source = reinterpret_cast<const float*>(kv_b.data());
  const auto* uk = static_cast<const float*>(weights.layers[1].w_uk.data);
  const auto* uv = static_cast<const float*>(weights.layers[1].w_uv.data);
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

// Fault B80: heads of 56 rows lie across the border of the first scale block (row 128), as GLM's
// heads of 448 do; each row takes its own block's scale, is multiplied in fp32 and rounded once.
TEST_F(EditedWeights, KvBFp8HeadsLieAcrossScaleBlocks) {
  const std::string name = kAttention + "kv_b_proj.weight";
  const auto scale_of = [](int64_t r, int64_t) { return r == 0 ? 0.3f : 1.7f; };
  quantise(name, scale_of);
  const ModelWeights weights = load_written();
  const ModelWeights exact = load_written({.reference_precision = true});
  ASSERT_EQ(weights.layers[1].w_uk.dtype, DType::kBf16);
  ASSERT_EQ(exact.layers[1].w_uk.dtype, DType::kF32);
  const std::vector<float> uk = to_floats(weights.layers[1].w_uk);
  const std::vector<float> uv = to_floats(weights.layers[1].w_uv);
  const std::vector<float> uk_f32 = to_floats(exact.layers[1].w_uk);
  const int nope = 24, v_dim = 32, latent = 32;
  for (int row = 0; row < 4 * (nope + v_dim); ++row) {
    const int h = row / (nope + v_dim), r = row % (nope + v_dim);
    for (int c = 0; c < latent; ++c) {
      const float value =
          (static_cast<float>((row * latent + c) % 15) - 7) * scale_of(row / 128, 0);
      if (r < nope) {
        ASSERT_EQ(uk[(h * latent + c) * nope + r], layout::round_to_bf16(value)) << row;
        ASSERT_EQ(uk_f32[(h * latent + c) * nope + r], value) << row;
      } else {
        ASSERT_EQ(uv[(h * v_dim + r - nope) * latent + c], layout::round_to_bf16(value)) << row;
      }
    }
  }
}

// Fault B07: the indexer's wk in FP8 beside a weights_proj that has no scale.
TEST_F(EditedWeights, Fp8IsDecidedTensorByTensor) {
  quantise(kAttention + "indexer.wk.weight", [](int64_t, int64_t) { return 0.5f; });
  quantise("model.layers.1.mlp.experts.3.down_proj.weight", [](int64_t, int64_t) { return 2.0f; });
  const ModelWeights weights = load_written();
  const IndexerWeights& indexer = *weights.layers[1].indexer;
  EXPECT_EQ(indexer.wk.dtype, DType::kE4m3);
  EXPECT_EQ(indexer.wk.scale[0], 0.5f);
  EXPECT_EQ(indexer.weights_proj.dtype, DType::kF32);
  EXPECT_EQ(indexer.weights_proj.scale, nullptr);
  EXPECT_EQ(weights.layers[1].moe->experts[3].down.scale[0], 2.0f);
  EXPECT_EQ(weights.layers[1].moe->experts[2].down.scale, nullptr);
}

// Fault B72: the router's bias stays fp32 to the last bit.
TEST_F(EditedWeights, RouterBiasStaysF32) {
  const std::vector<float> bias = {6.817f, 6.8180004f, 6.82f,      6.9f,
                                   7.0f,   7.06f,      7.0600004f, 7.063f};
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  editor_.tensors[name] = EditableTensor::f32({8}, bias);
  const ModelWeights weights = load_written();
  for (size_t i = 0; i < bias.size(); ++i) {
    EXPECT_EQ(weights.layers[1].moe->e_score_correction_bias[i], bias[i]);
  }
  editor_.tensors[name] = EditableTensor::bf16({8}, bias);
  const ModelWeights rounded = load_written();
  for (size_t i = 0; i < bias.size(); ++i) {
    EXPECT_EQ(rounded.layers[1].moe->e_score_correction_bias[i], layout::round_to_bf16(bias[i]));
  }
}

TEST_F(EditedWeights, NormsOfAnyFloatBecomeF32) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i) / 128;
  editor_.tensors["model.norm.weight"] = EditableTensor::bf16({64}, values);
  EditableTensor half = EditableTensor::bf16({64}, values);
  half.dtype = "F16";
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<uint16_t>(0x3c00 + i);  // 1 + i / 1024
    std::memcpy(half.bytes.data() + 2 * i, &bits, 2);
  }
  editor_.tensors["model.layers.0.input_layernorm.weight"] = half;
  const ModelWeights weights = load_written();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(weights.norm[i], values[i]);
    EXPECT_EQ(weights.layers[0].input_layernorm[i], 1.0f + static_cast<float>(i) / 1024);
  }
}

// A one-byte tensor in front leaves everything behind it at odd addresses.
TEST_F(EditedWeights, MisalignedTensorsAreCopied) {
  const std::vector<float> before = to_floats(load_written().layers[1].q_b_proj);
  editor_.tensors["a.rotary_emb.inv_freq"] = {"U8", {1}, "x"};
  const ModelWeights weights = load_written();
  EXPECT_EQ(weights.mapped_bytes, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.layers[1].q_b_proj.data) % 4, 0u);
  EXPECT_EQ(to_floats(weights.layers[1].q_b_proj), before);
}

TEST_F(EditedWeights, TiedEmbeddingsServeAsHead) {
  editor_.config.set("tie_word_embeddings", true);
  EXPECT_TRUE(check(written()).unknown.empty());  // with a head in the file that nobody reads
  editor_.tensors.erase("lm_head.weight");
  const ModelWeights weights = load_written();
  EXPECT_EQ(weights.lm_head.data, weights.embed_tokens.data);
  EXPECT_EQ(weights.lm_head.out_features, 512);
  editor_.config.set("tie_word_embeddings", false);
  expect_says(refusal(), {"lm_head.weight", "missing"});
}

TEST_F(EditedWeights, CacheScaleOfTheCheckpoint) {
  editor_.tensors[kAttention + "k_scale"] = EditableTensor::f32({}, {0.125f});
  editor_.tensors[kAttention + "v_scale"] = EditableTensor::f32({}, {0.125f});
  const ModelWeights weights = load_written();
  EXPECT_EQ(weights.layers[0].latent_cache_scale, 1.0f);
  EXPECT_EQ(weights.layers[1].latent_cache_scale, 0.125f);
  EXPECT_TRUE(check(folder_.path()).unknown.empty());
  editor_.tensors[kAttention + "k_scale"] = EditableTensor::f32({}, {0.0f});
  expect_says(refusal(), {"model.safetensors", "k_scale", "scale 0"});
}

// Fault B09: checkpoints may carry indexers on layers that share a top-k; B79: not as surplus.
TEST_F(EditedWeights, IndexersOfSharedLayersAreNotUsed) {
  for (const char* name : {"wq_b.weight", "wk.weight", "k_norm.weight", "k_norm.bias"}) {
    const std::string full = std::string("model.layers.1.self_attn.indexer.") + name;
    editor_.tensors[std::string("model.layers.2.self_attn.indexer.") + name] =
        editor_.tensors.at(full);
  }
  const WeightInventory inventory = check(written());
  EXPECT_TRUE(inventory.unknown.empty());
  EXPECT_EQ(inventory[WeightPart::kUnusedIndexer].tensors, 4);
  EXPECT_FALSE(load(folder_.path(), host_).layers[2].indexer.has_value());
}

TEST_F(EditedWeights, DraftLayersAndJunkAreSkippedAndSurplusIsListed) {
  const EditableTensor one = EditableTensor::f32({1}, {1});
  editor_.tensors["model.layers.4.eh_proj.weight"] = one;  // 4 layers: the draft layer is the fifth
  editor_.tensors["model.layers.4.mlp.experts.0.up_proj.weight"] = one;
  editor_.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = one;
  EXPECT_TRUE(check(written()).unknown.empty());
  EXPECT_TRUE(check(written()).has_mtp);
  // Beyond the draft layer, in a dense layer, an expert too many, and a name nobody knows.
  editor_.tensors["model.layers.5.eh_proj.weight"] = one;
  editor_.tensors["model.layers.0.mlp.experts.0.up_proj.weight"] = one;
  editor_.tensors["model.layers.1.mlp.experts.8.up_proj.weight"] = one;
  editor_.tensors["model.vision.weight"] = one;
  EXPECT_EQ(check(written()).unknown.size(), 4u);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  load_written();
  const std::string log =
      ::testing::internal::GetCapturedStderr() + ::testing::internal::GetCapturedStdout();
  EXPECT_NE(log.find("4 tensors are not used"), std::string::npos) << log;
  EXPECT_NE(log.find("model.vision.weight"), std::string::npos) << log;
}

// Fault B79: one of each kind of tensor gone, by name.
TEST_F(EditedWeights, EachMissingTensorIsNamed) {
  const auto whole = editor_.tensors;
  int kinds = 0;
  for (const auto& [name, tensor] : whole) {
    if (name.find("layers.1.") == std::string::npos &&
        name.find("layers.0.mlp") == std::string::npos &&
        name.find("layers.") != std::string::npos) {
      continue;
    }
    editor_.tensors = whole;
    editor_.tensors.erase(name);
    expect_says(refusal(), {folder_.path().c_str(), name.c_str(), "missing"});
    ++kinds;
  }
  EXPECT_GT(kinds, 40);
}

TEST_F(EditedWeights, WrongShapesAndTypes) {
  const auto whole = editor_.tensors;
  auto with = [&](const std::string& name, const EditableTensor& tensor) {
    editor_.tensors = whole;
    editor_.tensors[name] = tensor;
    return refusal();
  };
  const std::string norm = "model.layers.1.input_layernorm.weight";
  const std::string gate = "model.layers.1.mlp.gate.weight";
  const std::string q_a = kAttention + "q_a_proj.weight";
  const std::vector<float> zeros(4096, 0.0f);
  expect_says(with(norm, EditableTensor::f32({65}, std::vector<float>(65))),
              {"model.safetensors", norm.c_str(), "[65]", "[64]"});
  expect_says(with(norm, EditableTensor::f32({64, 1}, std::vector<float>(64))),
              {norm.c_str(), "[64, 1]"});
  expect_says(with(q_a, EditableTensor::f32({64, 32}, std::vector<float>(2048))),
              {q_a.c_str(), "[64, 32]", "[32, 64]"});
  expect_says(with(norm, {"I32", {64}, std::string(256, '\0')}), {norm.c_str(), "I32"});
  expect_says(with(norm, {"F64", {64}, std::string(512, '\0')}), {norm.c_str(), "F64"});
  expect_says(with(norm, {"F8_E4M3", {64}, std::string(64, '\0')}), {norm.c_str(), "F8_E4M3"});
  expect_says(with(gate, {"F8_E4M3", {8, 64}, std::string(512, '\0')}), {gate.c_str(), "F8_E4M3"});
  expect_says(with(q_a, {"F8_E5M2", {32, 64}, std::string(2048, '\0')}), {q_a.c_str(), "F8_E5M2"});
}

TEST_F(EditedWeights, BadScales) {
  const std::string name = "model.layers.1.mlp.experts.2.up_proj.weight";
  const std::string scale = scale_name(name);
  const auto whole = editor_.tensors;
  auto with_scale = [&](float value) {
    editor_.tensors = whole;
    quantise(name, [&](int64_t, int64_t) { return value; });
    return refusal();
  };
  for (float value : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    expect_says(with_scale(value), {"model.safetensors", scale.c_str(), "scale"});
  }
  quantise(name, [](int64_t, int64_t) { return 1.0f; });
  editor_.tensors[scale] = EditableTensor::f32({1, 2}, {1, 1});
  expect_says(refusal(), {scale.c_str(), "[1, 2]", "[1, 1]"});
  editor_.tensors[scale] = EditableTensor::bf16({1, 1}, {1});
  expect_says(refusal(), {scale.c_str(), "BF16", "F32"});
  editor_.tensors.erase(scale);
  expect_says(refusal(), {name.c_str(), "F8_E4M3", scale.c_str(), "missing"});
  // A scale beside a weight that needs none.
  editor_.tensors = whole;
  editor_.tensors[scale] = EditableTensor::f32({1, 1}, {1});
  expect_says(refusal(), {name.c_str(), "F32", "scale"});
}

}  // namespace
}  // namespace winnow::model
