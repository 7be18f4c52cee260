#include "model/config_layers.h"

#include <algorithm>

#include "base/log.h"

namespace winnow::model {

namespace {

void mark_moe_layers(const ConfigKeys& keys, std::vector<LayerConfig>& layers) {
  if (const auto types = keys.words("mlp_layer_types", layers.size())) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string& type = (*types)[i];
      if (type != "dense" && type != "sparse") {
        keys.refuse("mlp_layer_types", fmt::format("has \"{}\", neither dense nor sparse", type));
      }
      layers[i].is_moe = type == "sparse";
    }
    return;
  }
  if (!keys.has("first_k_dense_replace")) keys.missing("first_k_dense_replace");
  const int32_t first_moe = keys.count_or("first_k_dense_replace", 0);
  const int32_t frequency = keys.count_or("moe_layer_freq", 1);
  if (frequency == 0) keys.refuse("moe_layer_freq", "is 0");
  for (int32_t i = first_moe; i < static_cast<int32_t>(layers.size()); ++i) {
    layers[i].is_moe = i % frequency == 0;
  }
}

void mark_full_by_types(const ConfigKeys& keys,
                        const std::vector<std::string>& types,
                        std::vector<LayerConfig>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (types[i] != "full" && types[i] != "shared") {
      keys.refuse("indexer_types", fmt::format("has \"{}\", neither full nor shared", types[i]));
    }
    layers[i].owns_indexer = types[i] == "full";
  }
}

void mark_full_by_pattern(const ConfigKeys& keys,
                          const std::string& pattern,
                          std::vector<LayerConfig>& layers) {
  if (pattern.size() != layers.size() || pattern.find_first_not_of("FS") != std::string::npos) {
    keys.refuse("index_topk_pattern",
                fmt::format("must be {} letters F or S, one a layer", layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) layers[i].owns_indexer = pattern[i] == 'F';
}

void mark_full_by_frequency(const ConfigKeys& keys, std::vector<LayerConfig>& layers) {
  const int32_t frequency = keys.count_or("index_topk_freq", 1);
  if (frequency == 0) keys.refuse("index_topk_freq", "is 0");
  if (frequency > 1 && !keys.has("index_skip_topk_offset")) {
    log::warn("config.json has index_topk_freq but no index_skip_topk_offset: taking 2");
  }
  const int32_t offset = keys.count_or("index_skip_topk_offset", 2);
  for (int32_t i = 0; i < static_cast<int32_t>(layers.size()); ++i) {
    layers[i].owns_indexer = std::max(i - offset + 1, 0) % frequency == 0;
  }
}

void mark_indexers(const ConfigKeys& keys, std::vector<LayerConfig>& layers) {
  const char* source = "index_topk_freq";
  if (const auto types = keys.words("indexer_types", layers.size())) {
    source = "indexer_types";
    mark_full_by_types(keys, *types, layers);
  } else if (keys.has("index_topk_pattern")) {
    source = "index_topk_pattern";
    mark_full_by_pattern(keys, keys.text_or("index_topk_pattern", ""), layers);
  } else {
    mark_full_by_frequency(keys, layers);
  }
  if (!layers.front().owns_indexer) {
    keys.refuse(source, "makes layer 0 share a top-k, but no layer below it computes one");
  }
  int32_t nearest = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(layers.size()); ++i) {
    if (layers[i].owns_indexer) nearest = i;
    layers[i].topk_layer = nearest;
  }
}

}  // namespace

std::vector<LayerConfig> read_layer_table(const ConfigKeys& keys, const ModelConfig& config) {
  std::vector<LayerConfig> layers(config.num_hidden_layers);
  mark_moe_layers(keys, layers);
  if (config.has_indexer()) mark_indexers(keys, layers);
  return layers;
}

}  // namespace winnow::model
