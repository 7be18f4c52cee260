#include "model/config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "model/config_keys.h"
#include "model/config_layers.h"

namespace winnow::model {

namespace {

constexpr int32_t kMaxLayers = 1024;
constexpr double kMaxTopK = 1e9;
constexpr int32_t kMaxIndexTopk = 1 << 16;
constexpr double kMaxFactor = 1e6;  // real ones stay below 100; products stay within fp32
constexpr int64_t kMaxSharedWidth = int64_t{1} << 24;

json::Value parse_object(std::string_view text, const std::string& path) {
  auto parsed = json::parse(text);
  if (!parsed.ok()) throw_error("{}: {}", path, parsed.status().message);
  if (!parsed.value().is_object()) throw_error("{}: no JSON object", path);
  return std::move(parsed.value());
}

// The first of architectures; by model_type where the list is absent.
std::string read_architecture(const ConfigKeys& keys, const std::string& model_type) {
  if (const json::Value* list = keys.find("architectures")) {
    if (!list->is_array() || list->as_array().empty() || !list->as_array()[0].is_string()) {
      keys.refuse("architectures", "must be a list of strings");
    }
    return list->as_array()[0].as_string();
  }
  for (const Family& family : families()) {
    if (model_type == family.model_type) return family.architecture;
  }
  return "";
}

// What other models of these architectures might ask for and nobody here computes.
void refuse_unsupported(const ConfigKeys& keys) {
  if (keys.text_or("hidden_act", "silu") != "silu") keys.refuse("hidden_act", "must be silu");
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (keys.flag_or(bias, false)) keys.refuse(bias, "must be false");
  }
  if (keys.text_or("scoring_func", "sigmoid") != "sigmoid") {
    keys.refuse("scoring_func", "must be sigmoid");
  }
  if (keys.text_or("topk_method", "noaux_tc") != "noaux_tc") {
    keys.refuse("topk_method", "must be noaux_tc");
  }
  if (!keys.flag_or("rope_interleave", true)) keys.refuse("rope_interleave", "must be true");
}

void read_dimensions(const ConfigKeys& keys, ModelConfig& config) {
  config.vocab_size = keys.require_count("vocab_size");
  config.hidden_size = keys.require_count("hidden_size");
  config.num_hidden_layers = keys.require_count("num_hidden_layers");
  if (config.num_hidden_layers > kMaxLayers) {
    keys.refuse("num_hidden_layers", fmt::format("is above {}", kMaxLayers));
  }
  config.num_attention_heads = keys.require_count("num_attention_heads");
  config.intermediate_size = keys.require_count("intermediate_size");
  config.max_position_embeddings = keys.require_count("max_position_embeddings");
  config.rms_norm_eps = static_cast<float>(keys.require_positive("rms_norm_eps"));
  if (config.rms_norm_eps > 1) {
    keys.refuse("rms_norm_eps", fmt::format("is {}, above 1", config.rms_norm_eps));
  }
  config.tie_word_embeddings = keys.flag_or("tie_word_embeddings", false);
  config.num_nextn_predict_layers = keys.count_or("num_nextn_predict_layers", 0);

  config.q_lora_rank = keys.require_count("q_lora_rank");
  config.kv_lora_rank = keys.require_count("kv_lora_rank");
  config.qk_nope_head_dim = keys.require_count("qk_nope_head_dim");
  config.qk_rope_head_dim = keys.require_count("qk_rope_head_dim");
  config.v_head_dim = keys.require_count("v_head_dim");
  config.qk_head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim;
  if (config.qk_rope_head_dim % 2 != 0) keys.refuse("qk_rope_head_dim", "must be even");
  if (keys.count_or("qk_head_dim", config.qk_head_dim) != config.qk_head_dim) {
    keys.refuse("qk_head_dim", "is not qk_nope_head_dim + qk_rope_head_dim");
  }
}

void read_experts(const ConfigKeys& keys, ModelConfig& config) {
  if (config.num_moe_layers() == 0) return;
  config.n_routed_experts = keys.require_count("n_routed_experts");
  config.n_shared_experts = keys.count_or("n_shared_experts", 0);
  config.num_experts_per_tok = keys.require_count("num_experts_per_tok");
  config.moe_intermediate_size = keys.require_count("moe_intermediate_size");
  if (int64_t{config.n_shared_experts} * config.moe_intermediate_size > kMaxSharedWidth) {
    keys.refuse("n_shared_experts", "makes a shared expert beyond 2^24 wide");
  }
  config.shared_intermediate_size = config.n_shared_experts * config.moe_intermediate_size;
  config.n_group = keys.require_count("n_group");
  config.topk_group = keys.require_count("topk_group");
  config.norm_topk_prob = keys.flag_or("norm_topk_prob", true);
  config.routed_scaling_factor = static_cast<float>(keys.require_positive("routed_scaling_factor"));

  if (config.routed_scaling_factor > kMaxFactor) {
    keys.refuse("routed_scaling_factor",
                fmt::format("is {}, above {}", config.routed_scaling_factor, kMaxFactor));
  }
  const int32_t group_size = config.n_routed_experts / config.n_group;
  if (config.n_routed_experts % config.n_group != 0 || (config.n_group > 1 && group_size < 2)) {
    keys.refuse("n_group",
                fmt::format("is {} for {} experts", config.n_group, config.n_routed_experts));
  }
  if (config.topk_group > config.n_group) keys.refuse("topk_group", "is above n_group");
  if (config.num_experts_per_tok > group_size * config.topk_group) {
    keys.refuse("num_experts_per_tok",
                fmt::format("is {}, more than the {} experts to choose from",
                            config.num_experts_per_tok, group_size * config.topk_group));
  }
}

void read_indexer(const ConfigKeys& keys, ModelConfig& config) {
  const Family& family = *config.family;
  if (!family.has_indexer) return;
  config.index_n_heads = keys.require_count("index_n_heads");
  config.index_head_dim = keys.require_count("index_head_dim");
  config.index_topk = keys.require_count("index_topk");
  if (config.index_topk > kMaxIndexTopk) {
    keys.refuse("index_topk", fmt::format("is {}, above {}", config.index_topk, kMaxIndexTopk));
  }
  if (config.index_head_dim < config.qk_rope_head_dim) {
    keys.refuse("index_head_dim", "is below qk_rope_head_dim");
  }
  config.indexer_rope_interleave =
      keys.flag_or("indexer_rope_interleave", family.indexer_rope_interleave);
  config.indexer_hadamard =
      family.indexer_hadamard && std::has_single_bit(static_cast<uint32_t>(config.index_head_dim));
  config.indexer_ue8m0_scales =
      family.indexer_ue8m0_scales || config.quantization.scale_fmt == "ue8m0";
}

void check_yarn(const ConfigKeys& keys, const RopeParameters& rope) {
  const std::tuple<const char*, double, double> ranges[] = {
      {"factor", rope.factor, 1},
      {"mscale", rope.mscale, 0},
      {"mscale_all_dim", rope.mscale_all_dim, 0},
      {"attention_factor", rope.attention_factor, 0}};
  for (const auto& [key, value, least] : ranges) {
    if (!(value >= least && value <= kMaxFactor)) {
      keys.refuse(key, fmt::format("is {}, outside {} to {}", value, least, kMaxFactor));
    }
  }
  if (rope.beta_fast < rope.beta_slow) {  // equal in Kimi-K2
    keys.refuse("beta_fast",
                fmt::format("is {}, below beta_slow {}", rope.beta_fast, rope.beta_slow));
  }
}

// rope_parameters, or rope_scaling beside a rope_theta of its own.
RopeParameters read_rope(const ConfigKeys& keys, const std::string& path) {
  static const json::Value kNone{json::Object{}};
  const char* block_name = keys.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const json::Value* block = keys.find(block_name);
  if (block == nullptr) block = &kNone;
  if (!block->is_object()) keys.refuse(block_name, "must be an object");
  const ConfigKeys inner(*block, path, std::string(block_name) + ".");

  RopeParameters rope;
  rope.rope_theta = inner.has("rope_theta") ? inner.require_positive("rope_theta")
                                            : keys.require_positive("rope_theta");
  if (rope.rope_theta <= 1) keys.refuse("rope_theta", "must be above 1");
  rope.rope_type = inner.text_or("rope_type", inner.text_or("type", "default"));
  if (rope.rope_type == "default") return rope;
  if (!rope.is_yarn()) {
    inner.refuse("rope_type", fmt::format("is \"{}\"; known: default, yarn", rope.rope_type));
  }
  rope.factor = inner.require_positive("factor");
  rope.original_max_position_embeddings = inner.require_count("original_max_position_embeddings");
  rope.beta_fast = inner.has("beta_fast") ? inner.require_positive("beta_fast") : 32;
  rope.beta_slow = inner.has("beta_slow") ? inner.require_positive("beta_slow") : 1;
  rope.mscale = inner.number_or("mscale", 0);
  rope.mscale_all_dim = inner.number_or("mscale_all_dim", 0);
  rope.attention_factor = inner.number_or("attention_factor", 0);
  rope.truncate = inner.flag_or("truncate", true);
  check_yarn(inner, rope);
  return rope;
}

QuantizationConfig read_quantization(const ConfigKeys& keys, const std::string& path) {
  QuantizationConfig quantization;
  const json::Value* block = keys.find("quantization_config");
  if (block == nullptr) return quantization;
  if (!block->is_object()) keys.refuse("quantization_config", "must be an object");
  const ConfigKeys inner(*block, path, "quantization_config.");
  quantization.quant_method = inner.text_or("quant_method", "");
  quantization.fmt = inner.text_or("fmt", "e4m3");
  quantization.scale_fmt = inner.text_or("scale_fmt", "");
  quantization.activation_scheme = inner.text_or("activation_scheme", "dynamic");
  if (!quantization.is_fp8()) {
    inner.refuse("quant_method", fmt::format("is \"{}\"; known: fp8", quantization.quant_method));
  }
  if (quantization.fmt != "e4m3") inner.refuse("fmt", "must be e4m3");
  if (quantization.activation_scheme != "dynamic") {
    inner.refuse("activation_scheme", "must be dynamic");
  }
  const json::Value* block_size = inner.find("weight_block_size");
  if (block_size == nullptr) inner.missing("weight_block_size");
  if (*block_size != json::Value(json::Array{128, 128})) {
    inner.refuse("weight_block_size", "must be [128, 128]");
  }
  quantization.weight_block_size = {128, 128};
  return quantization;
}

void add_eos_ids(const ConfigKeys& keys, int32_t vocab_size, std::vector<int32_t>& ids) {
  const json::Value* value = keys.find("eos_token_id");
  if (value == nullptr) return;
  const json::Array list = value->is_array() ? value->as_array() : json::Array{*value};
  for (const json::Value& id : list) {
    if (!id.is_integer() || id.as_integer() < 0 || id.as_integer() >= vocab_size) {
      keys.refuse("eos_token_id", "must be ids of the vocabulary");
    }
    const auto token = static_cast<int32_t>(id.as_integer());
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
}

void read_generation(const ConfigKeys& keys, ModelConfig& config) {
  add_eos_ids(keys, config.vocab_size, config.eos_token_ids);
  GenerationDefaults& defaults = config.generation;
  defaults.temperature = keys.number("temperature");
  defaults.top_p = keys.number("top_p");
  defaults.min_p = keys.number("min_p");
  defaults.repetition_penalty = keys.number("repetition_penalty");
  if (const auto top_k = keys.number("top_k")) {
    if (!(std::abs(*top_k) <= kMaxTopK)) keys.refuse("top_k", fmt::format("is {}", *top_k));
    defaults.top_k = std::llround(*top_k);
  }
}

}  // namespace

int32_t ModelConfig::num_indexer_layers() const {
  return static_cast<int32_t>(
      std::count_if(layers.begin(), layers.end(), [](const auto& l) { return l.owns_indexer; }));
}

int32_t ModelConfig::num_moe_layers() const {
  return static_cast<int32_t>(
      std::count_if(layers.begin(), layers.end(), [](const auto& l) { return l.is_moe; }));
}

ModelConfig parse_config(std::string_view config_text,
                         const std::string& config_path,
                         std::string_view generation_text,
                         const std::string& generation_path) {
  const json::Value object = parse_object(config_text, config_path);
  const ConfigKeys keys(object, config_path);
  ModelConfig config;
  config.model_type = keys.text_or("model_type", "");
  config.architecture = read_architecture(keys, config.model_type);
  config.family = &find_family(config.architecture, config.model_type, config_path);
  config.dtype = keys.text_or("dtype", keys.text_or("torch_dtype", ""));
  refuse_unsupported(keys);
  read_dimensions(keys, config);
  config.rope_parameters = read_rope(keys, config_path);
  config.softmax_scale =
      static_cast<float>(std::pow(static_cast<double>(config.qk_head_dim), -0.5) *
                         softmax_scale_correction(config.rope_parameters));
  config.quantization = read_quantization(keys, config_path);
  read_indexer(keys, config);
  config.layers = read_layer_table(keys, config);
  read_experts(keys, config);
  add_eos_ids(keys, config.vocab_size, config.eos_token_ids);
  if (!generation_text.empty()) {
    const json::Value generation = parse_object(generation_text, generation_path);
    read_generation(ConfigKeys(generation, generation_path), config);
  }
  return config;
}

ModelConfig load_config(const std::string& model_path) {
  namespace fs = std::filesystem;
  const fs::path folder(model_path);
  if (!fs::is_directory(folder)) throw_error("{}: no such folder", model_path);
  const std::string config_path = (folder / "config.json").string();
  const std::string generation_path = (folder / "generation_config.json").string();
  const std::string generation_text =
      fs::exists(generation_path) ? read_file(generation_path) : std::string();
  return parse_config(read_file(config_path), config_path, generation_text, generation_path);
}

}  // namespace winnow::model
