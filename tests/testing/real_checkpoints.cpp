#include "testing/real_checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "testing/checkpoint_editor.h"
#include "testing/paths.h"

namespace winnow::testing {

namespace {

int64_t dtype_bytes(const std::string& dtype) {
  return dtype == "F32" ? 4 : dtype == "BF16" ? 2 : 1;
}

struct Sizes {
  int64_t vocab, hidden, layers, dense_layers, heads, q_lora, kv_rows_per_head, qk_head_dim, v_dim;
  int64_t dense_width, expert_width, experts, index_heads;
  bool fp8;
  std::string norm_dtype;  // also of the indexer's k_norm
  bool junk_inv_freq = false;
};

class TensorList {
 public:
  explicit TensorList(const Sizes& sizes) : s_(sizes) {}

  void add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape) {
    tensors.push_back({name, dtype, std::move(shape)});
  }
  void norm(const std::string& name, int64_t size) { add(name + ".weight", s_.norm_dtype, {size}); }
  void linear(const std::string& name, int64_t rows, int64_t cols) {
    add(name + ".weight", s_.fp8 ? "F8_E4M3" : "BF16", {rows, cols});
    if (s_.fp8) add(name + ".weight_scale_inv", "F32", {(rows + 127) / 128, (cols + 127) / 128});
  }
  void mlp(const std::string& prefix, int64_t width) {
    linear(prefix + ".gate_proj", width, s_.hidden);
    linear(prefix + ".up_proj", width, s_.hidden);
    linear(prefix + ".down_proj", s_.hidden, width);
  }
  void layer(int64_t i, bool owns_indexer) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const std::string attention = prefix + "self_attn.";
    norm(prefix + "input_layernorm", s_.hidden);
    norm(prefix + "post_attention_layernorm", s_.hidden);
    linear(attention + "q_a_proj", s_.q_lora, s_.hidden);
    norm(attention + "q_a_layernorm", s_.q_lora);
    linear(attention + "q_b_proj", s_.heads * s_.qk_head_dim, s_.q_lora);
    linear(attention + "kv_a_proj_with_mqa", 576, s_.hidden);
    norm(attention + "kv_a_layernorm", 512);
    linear(attention + "kv_b_proj", s_.heads * s_.kv_rows_per_head, 512);
    linear(attention + "o_proj", s_.hidden, s_.heads * s_.v_dim);
    if (s_.junk_inv_freq) add(attention + "rotary_emb.inv_freq", "BF16", {56});
    if (owns_indexer) indexer(attention + "indexer.");
    if (i < s_.dense_layers) {
      mlp(prefix + "mlp", s_.dense_width);
    } else {
      moe(prefix + "mlp.");
    }
  }
  void indexer(const std::string& prefix) {
    linear(prefix + "wq_b", s_.index_heads * 128, s_.q_lora);
    linear(prefix + "wk", 128, s_.hidden);
    norm(prefix + "k_norm", 128);
    add(prefix + "k_norm.bias", s_.norm_dtype, {128});
    add(prefix + "weights_proj.weight", "BF16", {s_.index_heads, s_.hidden});
  }
  void moe(const std::string& prefix) {
    add(prefix + "gate.weight", "BF16", {s_.experts, s_.hidden});
    add(prefix + "gate.e_score_correction_bias", "F32", {s_.experts});
    for (int64_t e = 0; e < s_.experts; ++e) {
      mlp(fmt::format("{}experts.{}", prefix, e), s_.expert_width);
    }
    mlp(prefix + "shared_experts", s_.expert_width);
  }
  void table(const std::string& name) { add(name + ".weight", "BF16", {s_.vocab, s_.hidden}); }
  void draft_layer(bool has_indexer, bool has_own_tables) {
    const std::string prefix = fmt::format("model.layers.{}.", s_.layers);
    layer(s_.layers, has_indexer);
    add(prefix + "eh_proj.weight", "BF16", {s_.hidden, 2 * s_.hidden});
    for (const char* name : {"enorm", "hnorm", "shared_head.norm"}) norm(prefix + name, s_.hidden);
    if (has_own_tables) {
      table(prefix + "embed_tokens");
      table(prefix + "shared_head.head");
    }
  }
  void globals() {
    table("model.embed_tokens");
    norm("model.norm", s_.hidden);
    table("lm_head");
  }

  std::vector<ListedTensor> tensors;

 private:
  Sizes s_;
};

Sizes glm_sizes(bool fp8) {
  return {.vocab = 154880,
          .hidden = 6144,
          .layers = 78,
          .dense_layers = 3,
          .heads = 64,
          .q_lora = 2048,
          .kv_rows_per_head = 448,
          .qk_head_dim = 256,
          .v_dim = 256,
          .dense_width = 12288,
          .expert_width = 2048,
          .experts = 256,
          .index_heads = 32,
          .fp8 = fp8,
          .norm_dtype = "BF16"};
}

// Writes header and index entries of one shard and cuts a hole for the data.
void write_shard(const std::string& path, const ListedTensor* begin, const ListedTensor* end) {
  json::Object header;
  int64_t offset = 0;
  for (const ListedTensor* t = begin; t != end; ++t) {
    json::Array shape(t->shape.begin(), t->shape.end());
    header.emplace_back(t->name,
                        json::Object{{"dtype", t->dtype},
                                     {"shape", std::move(shape)},
                                     {"data_offsets", json::Array{offset, offset + t->bytes()}}});
    offset += t->bytes();
  }
  const std::string bytes = safetensors_bytes(json::dump(header), "");
  std::ofstream(path, std::ios::binary) << bytes;
  if (::truncate(path.c_str(), static_cast<off_t>(bytes.size()) + offset) != 0) {
    throw_error("{}: no sparse file of {} bytes", path, offset);
  }
}

}  // namespace

int64_t ListedTensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}
int64_t ListedTensor::bytes() const { return elements() * dtype_bytes(dtype); }

int64_t RealCheckpoint::elements() const {
  int64_t total = 0;
  for (const ListedTensor& tensor : tensors) total += tensor.elements();
  return total;
}
int64_t RealCheckpoint::bytes() const {
  int64_t total = 0;
  for (const ListedTensor& tensor : tensors) total += tensor.bytes();
  return total;
}

void RealCheckpoint::write_sparse(const std::string& folder) const {
  std::filesystem::copy_file(data_path("configs/" + config_name + ".json"),
                             folder + "/config.json");
  json::Object weight_map;
  const int64_t total = bytes();
  int64_t done = 0;
  size_t begin = 0;
  for (int shard = 1; shard <= num_shards; ++shard) {
    size_t end = begin;
    while (end < tensors.size() && (shard == num_shards || done * num_shards < total * shard)) {
      done += tensors[end++].bytes();
    }
    const std::string name = fmt::format("model-{:05}-of-{:06}.safetensors", shard, num_shards);
    write_shard(folder + "/" + name, tensors.data() + begin, tensors.data() + end);
    for (; begin < end; ++begin) weight_map.emplace_back(tensors[begin].name, name);
  }
  std::ofstream(folder + "/model.safetensors.index.json") << json::dump(json::Object{
      {"metadata", json::Object{{"total_size", total}}}, {"weight_map", std::move(weight_map)}});
}

RealCheckpoint deepseek_v32() {
  TensorList list({.vocab = 129280,
                   .hidden = 7168,
                   .layers = 61,
                   .dense_layers = 3,
                   .heads = 128,
                   .q_lora = 1536,
                   .kv_rows_per_head = 256,
                   .qk_head_dim = 192,
                   .v_dim = 128,
                   .dense_width = 18432,
                   .expert_width = 2048,
                   .experts = 256,
                   .index_heads = 64,
                   .fp8 = true,
                   .norm_dtype = "F32"});
  for (int64_t i = 0; i < 61; ++i) list.layer(i, true);
  list.draft_layer(true, true);
  list.globals();
  return {"deepseek_v32", 163, std::move(list.tensors)};
}

RealCheckpoint glm52_fp8() {
  TensorList list(glm_sizes(true));
  for (int64_t i = 0; i < 78; ++i) list.layer(i, i < 3 || i % 4 == 2);
  list.draft_layer(true, false);
  list.globals();
  return {"glm52_fp8", 141, std::move(list.tensors)};
}

RealCheckpoint glm51_bf16() {
  TensorList list(glm_sizes(false));
  for (int64_t i = 0; i < 78; ++i) list.layer(i, true);
  list.draft_layer(true, false);
  list.globals();
  return {"glm5", 282, std::move(list.tensors)};
}

RealCheckpoint kimi_k2() {
  TensorList list({.vocab = 163840,
                   .hidden = 7168,
                   .layers = 61,
                   .dense_layers = 1,
                   .heads = 64,
                   .q_lora = 1536,
                   .kv_rows_per_head = 256,
                   .qk_head_dim = 192,
                   .v_dim = 128,
                   .dense_width = 18432,
                   .expert_width = 2048,
                   .experts = 384,
                   .index_heads = 0,
                   .fp8 = true,
                   .norm_dtype = "BF16",
                   .junk_inv_freq = true});
  for (int64_t i = 0; i < 61; ++i) list.layer(i, false);
  list.globals();
  return {"kimi_k2", 61, std::move(list.tensors)};
}

}  // namespace winnow::testing
