#include "model/weights_manifest.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "layout/kv_layout.h"

namespace winnow::model {

namespace {

constexpr std::string_view kLayerPrefix = "model.layers.";

class SlotList {
 public:
  WeightSlot& linear(
      WeightPart part, std::string name, int64_t rows, int64_t cols, ops::LinearWeight& to) {
    WeightSlot& slot = add(WeightKind::kLinear, part, std::move(name), rows, cols);
    slot.linear = &to;
    return slot;
  }
  WeightSlot& table(
      WeightPart part, std::string name, int64_t rows, int64_t cols, ops::LinearWeight& to) {
    WeightSlot& slot = add(WeightKind::kTable, part, std::move(name), rows, cols);
    slot.linear = &to;
    return slot;
  }
  void vector(WeightPart part, std::string name, int64_t size, const float*& to) {
    add(WeightKind::kVector, part, std::move(name), size, 0).vector = &to;
  }
  WeightSlot& kv_b(std::string name, int64_t rows, int64_t cols, LayerWeights& to) {
    WeightSlot& slot = add(WeightKind::kKvB, WeightPart::kAttention, std::move(name), rows, cols);
    slot.kv_b = &to;
    return slot;
  }
  void mlp(WeightPart part,
           const std::string& prefix,
           int64_t hidden,
           int64_t width,
           ops::MlpWeights& to) {
    linear(part, prefix + "gate_proj.weight", width, hidden, to.gate).split = WeightSplit::kRows;
    linear(part, prefix + "up_proj.weight", width, hidden, to.up).split = WeightSplit::kRows;
    linear(part, prefix + "down_proj.weight", hidden, width, to.down).split = WeightSplit::kCols;
  }
  std::vector<WeightSlot> take() { return std::move(slots_); }

 private:
  WeightSlot& add(WeightKind kind, WeightPart part, std::string name, int64_t rows, int64_t cols) {
    WeightSlot& slot = slots_.emplace_back();
    slot.name = std::move(name);
    slot.kind = kind;
    slot.part = part;
    slot.rows = rows;
    slot.cols = cols;
    return slot;
  }

  std::vector<WeightSlot> slots_;
};

// Heads go to ranks whole.
void split_heads(WeightSlot& slot, WeightSplit split, int64_t head_dim) {
  slot.split = split;
  slot.split_unit = head_dim;
}

void add_attention(const ModelConfig& c,
                   const std::string& prefix,
                   LayerWeights& w,
                   SlotList& list) {
  const int64_t hidden = c.hidden_size, heads = c.num_attention_heads, latent = c.kv_lora_rank;
  const auto part = WeightPart::kAttention;
  list.linear(part, prefix + "q_a_proj.weight", c.q_lora_rank, hidden, w.q_a_proj);
  list.vector(WeightPart::kNorms, prefix + "q_a_layernorm.weight", c.q_lora_rank, w.q_a_layernorm);
  split_heads(list.linear(part, prefix + "q_b_proj.weight", heads * c.qk_head_dim, c.q_lora_rank,
                          w.q_b_proj),
              WeightSplit::kRows, c.qk_head_dim);
  list.linear(part, prefix + "kv_a_proj_with_mqa.weight", latent + c.qk_rope_head_dim, hidden,
              w.kv_a_proj_with_mqa);
  list.vector(WeightPart::kNorms, prefix + "kv_a_layernorm.weight", latent, w.kv_a_layernorm);
  const int64_t kv_b_head = int64_t{c.qk_nope_head_dim} + c.v_head_dim;
  split_heads(list.kv_b(prefix + "kv_b_proj.weight", heads * kv_b_head, latent, w),
              WeightSplit::kRows, kv_b_head);
  split_heads(list.linear(part, prefix + "o_proj.weight", hidden, heads * c.v_head_dim, w.o_proj),
              WeightSplit::kCols, c.v_head_dim);
}

void add_indexer(const ModelConfig& c,
                 const std::string& prefix,
                 IndexerWeights& w,
                 SlotList& list) {
  const auto part = WeightPart::kIndexer;
  const int64_t dim = c.index_head_dim;
  list.linear(part, prefix + "wq_b.weight", c.index_n_heads * dim, c.q_lora_rank, w.wq_b);
  list.linear(part, prefix + "wk.weight", dim, c.hidden_size, w.wk);
  list.linear(part, prefix + "weights_proj.weight", c.index_n_heads, c.hidden_size, w.weights_proj);
  list.vector(part, prefix + "k_norm.weight", dim, w.k_norm_weight);
  list.vector(part, prefix + "k_norm.bias", dim, w.k_norm_bias);
}

void add_moe(const ModelConfig& c, const std::string& prefix, MoeWeights& w, SlotList& list) {
  list.table(WeightPart::kRouter, prefix + "gate.weight", c.n_routed_experts, c.hidden_size,
             w.gate);
  list.vector(WeightPart::kRouter, prefix + "gate.e_score_correction_bias", c.n_routed_experts,
              w.e_score_correction_bias);
  w.experts.resize(c.n_routed_experts);
  for (int32_t e = 0; e < c.n_routed_experts; ++e) {
    list.mlp(WeightPart::kExperts, fmt::format("{}experts.{}.", prefix, e), c.hidden_size,
             c.moe_intermediate_size, w.experts[e]);
  }
  if (c.n_shared_experts > 0) {
    list.mlp(WeightPart::kSharedExperts, prefix + "shared_experts.", c.hidden_size,
             c.shared_intermediate_size, w.shared_experts.emplace());
  }
}

void add_layer(const ModelConfig& c, int32_t layer, LayerWeights& w, SlotList& list) {
  const std::string prefix = fmt::format("{}{}.", kLayerPrefix, layer);
  list.vector(WeightPart::kNorms, prefix + "input_layernorm.weight", c.hidden_size,
              w.input_layernorm);
  add_attention(c, prefix + "self_attn.", w, list);
  if (c.layers[layer].owns_indexer) {
    add_indexer(c, prefix + "self_attn.indexer.", w.indexer.emplace(), list);
  }
  list.vector(WeightPart::kNorms, prefix + "post_attention_layernorm.weight", c.hidden_size,
              w.post_attention_layernorm);
  if (c.layers[layer].is_moe) {
    add_moe(c, prefix + "mlp.", w.moe.emplace(), list);
  } else {
    list.mlp(WeightPart::kDenseMlp, prefix + "mlp.", c.hidden_size, c.intermediate_size,
             w.mlp.emplace());
  }
}

[[noreturn]] void refuse(const CheckpointTensor& tensor, const std::string& what) {
  throw_error("{}: tensor {} {}", tensor.file->path(), tensor.name(), what);
}

void check_scale(const WeightSlot& slot,
                 const CheckpointTensor& tensor,
                 const CheckpointTensor* scale) {
  if (tensor.entry->dtype != DType::kE4m3) {
    if (scale != nullptr) {
      refuse(tensor, fmt::format("is {} but has a scale beside it", tensor.entry->dtype_name));
    }
    return;
  }
  if (scale == nullptr)
    refuse(tensor, "is F8_E4M3 but its " + scale_name(slot.name) + " is missing");
  const std::vector<int64_t> expected = {layout::ceil_div(slot.rows, layout::kScaleGroup),
                                         layout::ceil_div(slot.cols, layout::kScaleGroup)};
  if (scale->entry->dtype != DType::kF32) {
    refuse(*scale, fmt::format("is {}, expected F32", scale->entry->dtype_name));
  }
  if (scale->entry->shape != expected) {
    refuse(*scale, fmt::format("has shape {}, expected {}", format_shape(scale->entry->shape),
                               format_shape(expected)));
  }
}

void check_tensor(const WeightSlot& slot,
                  const CheckpointTensor& tensor,
                  const CheckpointTensor* scale) {
  const std::optional<DType> dtype = tensor.entry->dtype;
  const bool is_float = dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
  const bool may_be_fp8 = slot.kind == WeightKind::kLinear || slot.kind == WeightKind::kKvB;
  if (!is_float && !(may_be_fp8 && dtype == DType::kE4m3)) {
    refuse(tensor, fmt::format("is {}, expected F32, BF16{}", tensor.entry->dtype_name,
                               may_be_fp8 ? ", F16 or F8_E4M3" : " or F16"));
  }
  if (tensor.entry->shape != slot.shape()) {
    refuse(tensor, fmt::format("has shape {}, expected {}", format_shape(tensor.entry->shape),
                               format_shape(slot.shape())));
  }
  check_scale(slot, tensor, scale);
}

// The part of a tensor that no slot asked for.
WeightPart leftover_part(const ModelConfig& config, std::string_view name) {
  if (name.ends_with("rotary_emb.inv_freq")) return WeightPart::kIgnored;
  if (name == "lm_head.weight" || name == "lm_head.weight_scale_inv") return WeightPart::kIgnored;
  if (!name.starts_with(kLayerPrefix)) return WeightPart::kUnknown;
  std::string_view rest = name.substr(kLayerPrefix.size());
  int64_t layer = -1;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (error != std::errc() || layer < 0) return WeightPart::kUnknown;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  const int64_t num_draft_layers = std::max(config.num_nextn_predict_layers, 1);
  if (layer >= config.num_hidden_layers) {
    return layer < config.num_hidden_layers + num_draft_layers ? WeightPart::kMtp
                                                               : WeightPart::kUnknown;
  }
  if (rest.starts_with(".self_attn.indexer.") && !config.layers[layer].owns_indexer) {
    return WeightPart::kUnusedIndexer;
  }
  for (std::string_view scale : {".k_scale", ".v_scale", ".kv_scale"}) {
    if (rest.starts_with(".self_attn.") && rest.ends_with(scale)) return WeightPart::kIgnored;
  }
  return WeightPart::kUnknown;
}

}  // namespace

const char* to_string(WeightPart part) {
  static constexpr const char* kNames[kNumWeightParts] = {
      "embedding", "attention", "indexer", "dense mlp",      "router",  "experts", "shared experts",
      "norms",     "head",      "mtp",     "unused indexer", "ignored", "unknown"};
  return kNames[static_cast<size_t>(part)];
}

std::string scale_name(const std::string& weight_name) { return weight_name + "_scale_inv"; }

std::vector<WeightSlot> make_slots(const ModelConfig& config, ModelWeights& weights) {
  SlotList list;
  list.table(WeightPart::kEmbedding, "model.embed_tokens.weight", config.vocab_size,
             config.hidden_size, weights.embed_tokens)
      .split = WeightSplit::kRows;
  weights.layers.resize(config.num_hidden_layers);
  for (int32_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    add_layer(config, layer, weights.layers[layer], list);
  }
  list.vector(WeightPart::kNorms, "model.norm.weight", config.hidden_size, weights.norm);
  if (!config.tie_word_embeddings) {
    list.linear(WeightPart::kHead, "lm_head.weight", config.vocab_size, config.hidden_size,
                weights.lm_head)
        .split = WeightSplit::kRows;
  }
  return list.take();
}

int64_t WeightInventory::loaded_bytes() const {
  int64_t bytes = 0;
  for (int i = 0; i < kNumWeightParts; ++i) {
    if (is_loaded(static_cast<WeightPart>(i))) bytes += parts[i].bytes;
  }
  return bytes;
}

WeightInventory check_tensors(const ModelConfig& config,
                              const Checkpoint& checkpoint,
                              const std::vector<WeightSlot>& slots) {
  WeightInventory inventory;
  std::vector<bool> used(checkpoint.tensors().size(), false);
  auto count = [&](WeightPart part, const CheckpointTensor& tensor, bool is_weight) {
    WeightInventory::Part& total = inventory.parts[static_cast<size_t>(part)];
    ++total.tensors;
    total.bytes += tensor.entry->bytes();
    if (is_weight) total.elements += tensor.entry->elements();
    used[static_cast<size_t>(&tensor - checkpoint.tensors().data())] = true;
  };
  for (const WeightSlot& slot : slots) {
    const CheckpointTensor* tensor = checkpoint.find(slot.name);
    if (tensor == nullptr) throw_error("{}: tensor {} is missing", checkpoint.path(), slot.name);
    const CheckpointTensor* scale = nullptr;
    if (slot.kind != WeightKind::kVector) scale = checkpoint.find(scale_name(slot.name));
    check_tensor(slot, *tensor, scale);
    count(slot.part, *tensor, true);
    if (scale != nullptr) count(slot.part, *scale, false);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const CheckpointTensor& tensor = checkpoint.tensors()[i];
    const WeightPart part = leftover_part(config, tensor.name());
    count(part, tensor, !tensor.name().ends_with("_scale_inv"));
    if (part == WeightPart::kUnknown) inventory.unknown.push_back(tensor.name());
    if (part == WeightPart::kMtp) inventory.has_mtp = true;
  }
  return inventory;
}

}  // namespace winnow::model
