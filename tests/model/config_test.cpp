#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/json.h"
#include "base/mapped_file.h"
#include "testing/errors.h"
#include "testing/paths.h"
#include "testing/temp_folder.h"

namespace winnow::model {
namespace {

using testing::error_of;
using testing::expect_says;

json::Value config_json(const std::string& name) {
  return json::parse(read_file(testing::data_path("configs/" + name + ".json"))).value();
}

ModelConfig parse(const json::Value& config, std::string_view generation = {}) {
  return parse_config(json::dump(config), "dir/config.json", generation,
                      "dir/generation_config.json");
}

ModelConfig parse_real(const std::string& name) { return parse(config_json(name)); }

void remove(json::Value& object, std::string_view key) {
  std::erase_if(object.as_object(), [&](const json::Member& m) { return m.first == key; });
}

// What parsing says after one change of a real config.
std::string refusal(const std::string& name, const std::function<void(json::Value&)>& change) {
  json::Value config = config_json(name);
  change(config);
  return error_of([&] { parse(config); });
}

std::vector<int32_t> full_layers(const ModelConfig& config) {
  std::vector<int32_t> full;
  for (int32_t i = 0; i < config.num_hidden_layers; ++i) {
    if (config.layers[i].owns_indexer) full.push_back(i);
  }
  return full;
}

// Values that fp32 turns into 0 or infinity made every logit NaN once served.
TEST(Config, NumbersBeyondTheArithmetic) {
  const auto with = [](const char* key, json::Value value) {
    return refusal("glm5", [&](json::Value& c) { c.set(key, value); });
  };
  for (const double eps : {1e-300, 1e-45, 2.0, 1e300})
    expect_says(with("rms_norm_eps", eps), {"rms_norm_eps"});
  for (const double scale : {1e-300, 1e7, 1e39}) {
    expect_says(with("routed_scaling_factor", scale), {"routed_scaling_factor"});
  }
  expect_says(with("index_topk", 65537), {"index_topk is 65537, above 65536"});
  expect_says(with("mlp_bias", true), {"mlp_bias must be false"});
  const std::pair<const char*, double> yarn[] = {
      {"factor", 1e-300}, {"factor", 1e300}, {"mscale", -1},           {"mscale_all_dim", 1e200},
      {"beta_fast", 0.5}, {"factor", 0.5},   {"attention_factor", -1}, {"attention_factor", 1e300}};
  for (const auto& [key, value] : yarn) {
    json::Value rope = json::Object{{"rope_type", "yarn"},
                                    {"rope_theta", 10000.0},
                                    {"factor", 4.0},
                                    {"original_max_position_embeddings", 4096}};
    rope.set(key, value);
    expect_says(with("rope_parameters", rope), {key});
  }
}

TEST(Config, Glm5) {
  const ModelConfig c = parse_real("glm5");
  EXPECT_STREQ(c.family->name, "GLM-5");
  EXPECT_EQ(c.qk_head_dim, 256);
  EXPECT_EQ(c.softmax_scale, 0.0625f);
  EXPECT_EQ(c.rms_norm_eps, 1e-5f);
  EXPECT_EQ(c.num_moe_layers(), 75);
  EXPECT_EQ(c.num_indexer_layers(), 78);
  EXPECT_TRUE(c.indexer_rope_interleave);
  EXPECT_FALSE(c.indexer_hadamard);
  EXPECT_FALSE(c.indexer_ue8m0_scales);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{154820, 154827, 154829}));
  EXPECT_EQ(c.shared_intermediate_size, 2048);
  EXPECT_FALSE(c.quantization.is_fp8());
}

TEST(Config, Glm52SharesIndexersByListOrByFormula) {
  std::vector<int32_t> expected = {0, 1, 2};
  for (int32_t i = 6; i < 78; i += 4) expected.push_back(i);
  ASSERT_EQ(expected.size(), 21u);
  json::Value config = config_json("glm52_fp8");
  const ModelConfig by_list = parse(config);
  EXPECT_EQ(full_layers(by_list), expected);
  EXPECT_TRUE(by_list.quantization.is_fp8());
  EXPECT_EQ(by_list.quantization.scale_fmt, "");
  EXPECT_EQ(by_list.layers[5].topk_layer, 2);
  EXPECT_EQ(by_list.layers[6].topk_layer, 6);
  EXPECT_EQ(by_list.layers[77].topk_layer, 74);

  remove(config, "indexer_types");
  EXPECT_EQ(full_layers(parse(config)), expected);

  std::string pattern(78, 'S');
  for (int32_t i : {0, 1, 40}) pattern[i] = 'F';
  config.set("index_topk_pattern", pattern);
  EXPECT_EQ(full_layers(parse(config)), (std::vector<int32_t>{0, 1, 40}));
  // The list is stronger than the pattern.
  config.set("indexer_types", *config_json("glm52_fp8").find("indexer_types"));
  EXPECT_EQ(full_layers(parse(config)), expected);
}

TEST(Config, SharingOffsetIsTwoWhereTheKeyIsAbsent) {
  json::Value config = config_json("glm5");
  config.set("index_topk_freq", 4);
  const std::vector<int32_t> full = full_layers(parse(config));
  EXPECT_EQ((std::vector<int32_t>(full.begin(), full.begin() + 4)),
            (std::vector<int32_t>{0, 1, 5, 9}));
}

// Fault B10: layer 0 has nobody to share with, by whichever key.
TEST(Config, SharedLayerZeroIsRefused) {
  expect_says(
      refusal("glm5",
              [](json::Value& c) { c.set("index_topk_pattern", "S" + std::string(77, 'F')); }),
      {"config.json", "index_topk_pattern", "layer 0"});
  expect_says(refusal("glm52_fp8",
                      [](json::Value& c) { c.find("indexer_types")->as_array()[0] = "shared"; }),
              {"indexer_types", "layer 0"});
  expect_says(refusal("glm5",
                      [](json::Value& c) {
                        c.set("index_topk_freq", 4);
                        c.set("index_skip_topk_offset", 0);
                      }),
              {"index_topk_freq", "layer 0"});
}

TEST(Config, DeepseekV32) {
  const ModelConfig c = parse_real("deepseek_v32");
  EXPECT_STREQ(c.family->name, "DeepSeek-V3.2");
  EXPECT_EQ(c.qk_head_dim, 192);
  EXPECT_NEAR(c.softmax_scale, 0.13523378, 1e-7);
  EXPECT_EQ(c.num_indexer_layers(), 61);
  EXPECT_FALSE(c.indexer_rope_interleave);
  EXPECT_TRUE(c.indexer_hadamard);
  EXPECT_TRUE(c.indexer_ue8m0_scales);
  EXPECT_EQ(c.n_group, 8);
  EXPECT_EQ(c.topk_group, 4);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{1}));
  EXPECT_EQ(c.dtype, "bfloat16");
}

TEST(Config, DenseFamilies) {
  const ModelConfig v3 = parse_real("deepseek_v3");
  EXPECT_STREQ(v3.family->name, "DeepSeek-V3");
  EXPECT_FALSE(v3.has_indexer());
  EXPECT_EQ(v3.layers[10].topk_layer, -1);
  const ModelConfig kimi = parse_real("kimi_k2");
  EXPECT_STREQ(kimi.family->name, "Kimi-K2");
  EXPECT_NEAR(kimi.softmax_scale, 0.13086080, 1e-7);
  EXPECT_EQ(kimi.num_moe_layers(), 60);
  json::Value thinking = config_json("kimi_k2");
  thinking.find("rope_scaling")->set("factor", 64);
  EXPECT_NEAR(parse(thinking).softmax_scale, 0.14467963, 1e-7);
}

// Fault B02: GLM and V3.2 differ where the flag is absent, and the flag wins where it is there.
TEST(Config, IndexerRopePairing) {
  json::Value glm = config_json("glm5"), v32 = config_json("deepseek_v32");
  remove(glm, "indexer_rope_interleave");
  EXPECT_TRUE(parse(glm).indexer_rope_interleave);
  glm.set("indexer_rope_interleave", false);
  EXPECT_FALSE(parse(glm).indexer_rope_interleave);
  v32.set("indexer_rope_interleave", true);
  EXPECT_TRUE(parse(v32).indexer_rope_interleave);
}

void expect_frequencies(const ModelConfig& config,
                        std::initializer_list<std::pair<int, double>> spots) {
  const std::vector<float> f = inverse_frequencies(config.rope_parameters, config.qk_rope_head_dim);
  ASSERT_EQ(f.size(), 32u);
  for (const auto& [i, value] : spots) EXPECT_NEAR(f[i] / value, 1, 1e-6) << i;
  EXPECT_EQ(rope_amplitude(config.rope_parameters), 1.0f);
}

TEST(Config, RopeFrequencies) {
  expect_frequencies(parse_real("deepseek_v32"), {{0, 1},
                                                  {10, 5.623413e-2},
                                                  {11, 3.900693e-2},
                                                  {16, 5.5e-3},
                                                  {22, 1.778279e-4},
                                                  {23, 3.333804e-5},
                                                  {31, 3.333804e-6}});
  expect_frequencies(parse_real("kimi_k2"), {{19, 1.621760e-3}, {20, 3.614047e-5}});
  expect_frequencies(parse_real("glm5"), {{1, 0.6493816}, {16, 1e-3}, {31, 1.539927e-6}});
  expect_frequencies(parse_real("glm52_fp8"),
                     {{1, 0.6085250}, {16, 3.535534e-4}, {31, 2.054147e-7}});
}

TEST(Config, RopeSpellings) {
  const ModelConfig old_style = parse_real("deepseek_v3");
  json::Value config = config_json("deepseek_v3");
  json::Value rope = *config.find("rope_scaling");
  remove(config, "rope_scaling");
  remove(config, "rope_theta");
  remove(rope, "type");
  rope.set("rope_type", "yarn");
  rope.set("rope_theta", 10000.0);
  config.set("rope_parameters", rope);
  const ModelConfig new_style = parse(config);
  EXPECT_EQ(old_style.softmax_scale, new_style.softmax_scale);
  EXPECT_EQ(inverse_frequencies(old_style.rope_parameters, 64),
            inverse_frequencies(new_style.rope_parameters, 64));
  // A theta beside the block, and no scaling at all.
  remove(*config.find("rope_parameters"), "rope_theta");
  config.set("rope_theta", 10000);
  EXPECT_EQ(parse(config).rope_parameters.rope_theta, 10000);
  remove(config, "rope_parameters");
  config.set("rope_scaling", nullptr);
  EXPECT_FALSE(parse(config).rope_parameters.is_yarn());
  EXPECT_NEAR(parse(config).softmax_scale, std::pow(192.0, -0.5), 1e-8);
}

TEST(Config, YarnWithoutMscaleScalesCosAndSinInstead) {
  json::Value config = config_json("deepseek_v3");
  remove(*config.find("rope_scaling"), "mscale");
  remove(*config.find("rope_scaling"), "mscale_all_dim");
  const ModelConfig c = parse(config);
  EXPECT_NEAR(rope_amplitude(c.rope_parameters), 0.1 * std::log(40.0) + 1, 1e-6);
  EXPECT_NEAR(c.softmax_scale, std::pow(192.0, -0.5), 1e-8);
}

TEST(Config, EveryRequiredKeyIsNamed) {
  for (const char* key : {"hidden_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "q_lora_rank",
                          "kv_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "v_head_dim",
                          "intermediate_size",
                          "moe_intermediate_size",
                          "n_routed_experts",
                          "num_experts_per_tok",
                          "first_k_dense_replace",
                          "vocab_size",
                          "rms_norm_eps",
                          "index_n_heads",
                          "index_head_dim",
                          "index_topk",
                          "n_group",
                          "topk_group",
                          "routed_scaling_factor",
                          "max_position_embeddings",
                          "rope_theta"}) {
    auto message = [&](bool null) {
      return refusal("deepseek_v32",
                     [&](json::Value& c) { null ? c.set(key, nullptr) : remove(c, key); });
    };
    expect_says(message(false), {"dir/config.json", "required key", key, "missing"});
    expect_says(message(true), {"dir/config.json", "required key", key, "missing"});
  }
}

TEST(Config, DefaultsOfAbsentKeys) {
  json::Value config = config_json("deepseek_v32");
  for (const char* key :
       {"scoring_func", "topk_method", "moe_layer_freq", "norm_topk_prob", "hidden_act",
        "attention_bias", "num_nextn_predict_layers", "tie_word_embeddings", "eos_token_id",
        "quantization_config", "torch_dtype"}) {
    remove(config, key);
  }
  const ModelConfig c = parse(config);
  EXPECT_EQ(c.num_moe_layers(), 58);
  EXPECT_TRUE(c.norm_topk_prob);
  EXPECT_TRUE(c.eos_token_ids.empty());
  EXPECT_TRUE(c.indexer_ue8m0_scales);  // by family, not by the quantization block
  // A null dtype falls back to torch_dtype; head_dim says nothing.
  config.set("dtype", nullptr);
  config.set("torch_dtype", "float16");
  config.set("head_dim", 999);
  EXPECT_EQ(parse(config).dtype, "float16");
  EXPECT_EQ(parse(config).qk_head_dim, 192);
}

TEST(Config, MlpLayerTypesOverrideFirstKDense) {
  json::Value config = config_json("glm52_fp8");
  config.find("mlp_layer_types")->as_array()[40] = "dense";
  EXPECT_EQ(parse(config).num_moe_layers(), 74);
  EXPECT_FALSE(parse(config).layers[40].is_moe);
}

TEST(Config, UnknownArchitectureIsListedAgainstTheKnown) {
  expect_says(refusal("glm5",
                      [](json::Value& c) {
                        c.set("architectures", json::Array{"LlamaForCausalLM"});
                        c.set("model_type", "llama");
                      }),
              {"LlamaForCausalLM", "llama", "GlmMoeDsaForCausalLM", "DeepseekV32ForCausalLM",
               "DeepseekV3ForCausalLM"});
  // By model_type where the list is absent.
  json::Value config = config_json("glm5");
  remove(config, "architectures");
  EXPECT_STREQ(parse(config).family->name, "GLM-5");
}

TEST(Config, WhatIsNotComputedIsRefused) {
  auto with = [](const char* key, json::Value value) {
    return refusal("glm52_fp8", [&](json::Value& c) { c.set(key, value); });
  };
  expect_says(with("hidden_act", "gelu"), {"hidden_act"});
  expect_says(with("attention_bias", true), {"attention_bias"});
  expect_says(with("scoring_func", "softmax"), {"scoring_func"});
  expect_says(with("topk_method", "greedy"), {"topk_method"});
  expect_says(with("rope_interleave", false), {"rope_interleave"});
  expect_says(with("rope_parameters", json::Object{{"rope_theta", 1e6}, {"rope_type", "longrope"}}),
              {"rope_parameters.rope_type", "longrope", "yarn"});
  expect_says(with("quantization_config", json::Object{{"quant_method", "compressed-tensors"}}),
              {"quantization_config.quant_method", "compressed-tensors", "fp8"});
  expect_says(with("quantization_config", json::Object{{"quant_method", "fp8"},
                                                       {"weight_block_size", json::Array{64, 64}}}),
              {"weight_block_size"});
  expect_says(with("quantization_config", json::Object{{"quant_method", "fp8"}}),
              {"weight_block_size", "missing"});
}

TEST(Config, ValuesThatCannotBe) {
  auto with = [](const char* key, json::Value value) {
    return refusal("deepseek_v32", [&](json::Value& c) { c.set(key, value); });
  };
  expect_says(with("hidden_size", "7168"), {"hidden_size", "integer", "string"});
  expect_says(with("hidden_size", 7168.0), {"hidden_size", "integer"});
  expect_says(with("hidden_size", -1), {"hidden_size"});
  expect_says(with("hidden_size", int64_t{1} << 40), {"hidden_size"});
  expect_says(with("num_hidden_layers", 0), {"num_hidden_layers"});
  expect_says(with("num_hidden_layers", 100000), {"num_hidden_layers"});
  expect_says(with("rms_norm_eps", 0), {"rms_norm_eps"});
  expect_says(with("qk_head_dim", 200), {"qk_head_dim"});
  expect_says(with("qk_rope_head_dim", 63), {"qk_rope_head_dim"});
  expect_says(with("n_group", 7), {"n_group"});
  expect_says(with("topk_group", 9), {"topk_group"});
  expect_says(with("num_experts_per_tok", 129), {"num_experts_per_tok", "128"});
  expect_says(with("n_shared_experts", 100000), {"n_shared_experts"});
  expect_says(with("index_head_dim", 32), {"index_head_dim"});
  expect_says(with("indexer_types", json::Array{"full"}), {"indexer_types", "1 entries for 61"});
  expect_says(with("mlp_layer_types", json::Array{}), {"mlp_layer_types", "0 entries for 61"});
  expect_says(with("index_topk_pattern", "FX"), {"index_topk_pattern"});
  expect_says(with("eos_token_id", 129280), {"eos_token_id"});
  expect_says(with("eos_token_id", json::Array{1, "2"}), {"eos_token_id"});
  expect_says(error_of([] { parse_config("{", "dir/config.json"); }), {"dir/config.json", "JSON"});
  expect_says(error_of([] { parse_config("[]", "dir/config.json"); }), {"dir/config.json"});
}

TEST(Config, GenerationConfigAddsEosAndDefaults) {
  const ModelConfig c =
      parse(config_json("kimi_k2"), R"({"eos_token_id":163586,"temperature":0.6,"top_k":20})");
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{163585, 163586}));
  EXPECT_EQ(c.generation.temperature, 0.6);
  EXPECT_EQ(c.generation.top_k, 20);
  EXPECT_FALSE(c.generation.top_p.has_value());
}

TEST(Config, LoadsAFolder) {
  testing::TempFolder folder;
  expect_says(error_of([&] { load_config(folder.path()); }), {"config.json", "No such file"});
  expect_says(error_of([&] { load_config(folder.file("absent")); }), {"absent", "no such folder"});
  folder.write("config.json", json::dump(config_json("glm5")));
  folder.write("generation_config.json", R"({"top_p":0.95})");
  EXPECT_EQ(load_config(folder.path()).generation.top_p, 0.95);
}

}  // namespace
}  // namespace winnow::model
