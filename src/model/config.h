// config.json (and generation_config.json) of a checkpoint. Field names are the file's own, letter
// for letter; what is derived from them stands below each group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_rope.h"
#include "model/families.h"

namespace winnow::model {

// One row of the table that inspect prints and the decoder walks.
struct LayerConfig {
  bool is_moe = false;
  bool owns_indexer = false;
  // The layer whose top-k this one attends to: itself, the nearest full layer below, or -1 in
  // families without an indexer.
  int32_t topk_layer = -1;
};

struct QuantizationConfig {
  std::string quant_method;  // "" = not quantised, else "fp8"
  std::string fmt;           // "e4m3"
  std::string scale_fmt;     // "" or "ue8m0"
  std::string activation_scheme;
  std::vector<int64_t> weight_block_size;  // [128, 128]

  bool is_fp8() const { return quant_method == "fp8"; }
};

// What generation_config.json suggests for requests that say nothing.
struct GenerationDefaults {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

struct ModelConfig {
  const Family* family = nullptr;
  std::string architecture;
  std::string model_type;
  std::string dtype;  // as written, "" when absent; the tensors decide

  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t num_hidden_layers = 0;
  int32_t num_attention_heads = 0;
  int32_t intermediate_size = 0;
  int32_t max_position_embeddings = 0;
  float rms_norm_eps = 0;
  bool tie_word_embeddings = false;

  int32_t q_lora_rank = 0;
  int32_t kv_lora_rank = 0;
  int32_t qk_nope_head_dim = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t v_head_dim = 0;
  int32_t qk_head_dim = 0;  // qk_nope_head_dim + qk_rope_head_dim
  float softmax_scale = 0;  // qk_head_dim^-0.5, yarn's correction applied
  RopeParameters rope_parameters;

  int32_t moe_intermediate_size = 0;
  int32_t n_routed_experts = 0;  // 0: dense layers only
  int32_t n_shared_experts = 0;
  int32_t num_experts_per_tok = 0;
  int32_t n_group = 1;
  int32_t topk_group = 1;
  bool norm_topk_prob = true;
  float routed_scaling_factor = 1;
  int32_t shared_intermediate_size = 0;  // n_shared_experts * moe_intermediate_size

  int32_t index_n_heads = 0;  // 0: no indexer
  int32_t index_head_dim = 0;
  int32_t index_topk = 0;
  bool indexer_rope_interleave = false;
  bool indexer_hadamard = false;
  bool indexer_ue8m0_scales = false;

  int32_t num_nextn_predict_layers = 0;  // as written: whether MTP tensors exist, the file says
  std::vector<LayerConfig> layers;       // [num_hidden_layers]

  std::vector<int32_t> eos_token_ids;  // of config.json and generation_config.json together
  QuantizationConfig quantization;
  GenerationDefaults generation;

  bool has_indexer() const { return index_n_heads > 0; }
  int32_t num_indexer_layers() const;
  int32_t num_moe_layers() const;
};

// Reads model_path/config.json and, where there is one, generation_config.json.
// Throws Error naming the file and the key.
ModelConfig load_config(const std::string& model_path);

// The same from text; config_path is for messages. generation_text may be empty.
ModelConfig parse_config(std::string_view config_text,
                         const std::string& config_path,
                         std::string_view generation_text = {},
                         const std::string& generation_path = {});

}  // namespace winnow::model
