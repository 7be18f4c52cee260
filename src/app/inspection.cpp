#include "app/inspection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/progress.h"
#include "base/table.h"

namespace winnow::app {

using model::WeightPart;

namespace {

// Layers of one kind, in the order in which the kinds first appear.
struct LayerKind {
  bool is_moe;
  bool owns_indexer;
  std::vector<int32_t> layers;
};

std::vector<LayerKind> kinds_of(const model::ModelConfig& config) {
  std::vector<LayerKind> kinds;
  for (int32_t i = 0; i < config.num_hidden_layers; ++i) {
    const model::LayerConfig& layer = config.layers[i];
    auto same = [&](const LayerKind& k) {
      return k.is_moe == layer.is_moe && k.owns_indexer == layer.owns_indexer;
    };
    auto kind = std::find_if(kinds.begin(), kinds.end(), same);
    if (kind == kinds.end())
      kind = kinds.insert(kinds.end(), {layer.is_moe, layer.owns_indexer, {}});
    kind->layers.push_back(i);
  }
  return kinds;
}

const char* indexer_word(const model::ModelConfig& config, bool owns_indexer) {
  if (!config.has_indexer()) return "none";
  return owns_indexer ? "full" : "shared";
}

std::string head_text(const Inspection& in) {
  const model::ModelConfig& c = in.config;
  std::string text =
      fmt::format("{}: {} ({}, {})\n", in.path, c.family->name, c.architecture, c.model_type);
  text += fmt::format("{} tensors in {} file{}, {}{}\n", with_thousands(in.num_tensors),
                      in.num_files, in.num_files == 1 ? "" : "s", format_bytes(in.total_bytes),
                      in.inventory.has_mtp ? ", MTP layer included" : "");
  text += fmt::format(
      "context {}, vocabulary {}, hidden {}, {} heads, rope {} theta {}{}\n",
      with_thousands(c.max_position_embeddings), with_thousands(c.vocab_size), c.hidden_size,
      c.num_attention_heads, c.rope_parameters.rope_type, c.rope_parameters.rope_theta,
      c.rope_parameters.is_yarn() ? fmt::format(" factor {}", c.rope_parameters.factor) : "");
  if (c.has_indexer()) {
    text += fmt::format("indexer: {} heads of {}, top {} tokens, in {} of {} layers\n",
                        c.index_n_heads, c.index_head_dim, with_thousands(c.index_topk),
                        c.num_indexer_layers(), c.num_hidden_layers);
  }
  return text;
}

std::string weights_text(const Inspection& in) {
  Table table({"weights", ">tensors", ">parameters", ">bytes", ">share"});
  const auto loaded = static_cast<double>(in.inventory.loaded_bytes());
  model::WeightInventory::Part sum;
  for (int i = 0; i < model::kNumWeightParts; ++i) {
    const auto part = static_cast<WeightPart>(i);
    const auto& p = in.inventory[part];
    if (p.tensors == 0 || !is_loaded(part)) continue;
    table.add_row({to_string(part), with_thousands(p.tensors), with_thousands(p.elements),
                   format_bytes(p.bytes),
                   fmt::format("{:.1f} %", 100 * static_cast<double>(p.bytes) / loaded)});
    sum.tensors += p.tensors;
    sum.elements += p.elements;
    sum.bytes += p.bytes;
  }
  table.add_row({"all", with_thousands(sum.tensors), with_thousands(sum.elements),
                 format_bytes(sum.bytes), ""});
  for (int i = 0; i < model::kNumWeightParts; ++i) {
    const auto part = static_cast<WeightPart>(i);
    const auto& p = in.inventory[part];
    if (p.tensors == 0 || is_loaded(part)) continue;
    table.add_row({fmt::format("not loaded: {}", to_string(part)), with_thousands(p.tensors),
                   with_thousands(p.elements), format_bytes(p.bytes), ""});
  }
  return table.to_text();
}

std::string layers_text(const Inspection& in) {
  Table table({"layers", ">count", "feed forward", "indexer"});
  for (const LayerKind& kind : kinds_of(in.config)) {
    table.add_row({format_layers(kind.layers), std::to_string(kind.layers.size()),
                   kind.is_moe ? fmt::format("{} of {} experts{}", in.config.num_experts_per_tok,
                                             in.config.n_routed_experts,
                                             in.config.n_shared_experts > 0 ? " and shared" : "")
                               : "dense",
                   indexer_word(in.config, kind.owns_indexer)});
  }
  return table.to_text();
}

std::string caches_text(const Inspection& in) {
  const bool with_memory = in.memory_bytes > 0;
  std::vector<std::string> titles = {"cache layout", ">B a token, a layer", ">B a token",
                                     "winnow serve"};
  if (with_memory) titles.insert(titles.end() - 1, ">tokens that fit");
  Table table(titles);
  for (const CacheOption& cache : in.caches) {
    std::string layout = to_string(cache.latent_layout);
    std::string bytes = std::to_string(cache.latent_bytes);
    if (cache.index_key_bytes > 0) {
      layout += std::string(" + ") + to_string(cache.index_key_layout);
      bytes += fmt::format(" + {}", cache.index_key_bytes);
    }
    std::vector<std::string> row = {layout, bytes, with_thousands(cache.token_bytes), cache.flags};
    if (with_memory) row.insert(row.end() - 1, with_thousands(cache.plan.num_tokens));
    table.add_row(row);
  }
  std::string text = table.to_text();
  if (with_memory) {
    const auto usable =
        static_cast<int64_t>(static_cast<double>(in.memory_bytes) * in.memory_fraction);
    text += fmt::format("of {} a device, {} may be used; weights take {}{}\n",
                        format_bytes(in.memory_bytes), format_bytes(usable),
                        format_bytes(in.rank_weight_bytes),
                        in.num_ranks > 1 ? fmt::format(" on each of {} ranks", in.num_ranks) : "");
    if (in.rank_weight_bytes > usable) text += "the weights do not fit\n";
  }
  return text;
}

std::string backend_text(const BackendAnswer& backend) {
  if (!backend.problem.empty())
    return fmt::format("backend {}: {}\n", backend.name, backend.problem);
  Table table({"op", "of", "kernel"});
  for (const auto& row : backend.kernels) table.add_row({row.op, row.serves, row.kernel});
  return fmt::format("backend {}: serves this model with {} kernels\n\n{}", backend.name,
                     backend.isa, table.to_text());
}

json::Value backends_json(const Inspection& in) {
  json::Array backends;
  for (const BackendAnswer& backend : in.backends) {
    json::Array kernels;
    for (const auto& row : backend.kernels) {
      kernels.push_back(json::Object{{"op", row.op}, {"of", row.serves}, {"kernel", row.kernel}});
    }
    backends.push_back(json::Object{{"name", backend.name},
                                    {"serves", backend.problem.empty()},
                                    {"problem", backend.problem},
                                    {"instruction_set", backend.isa},
                                    {"kernels", std::move(kernels)}});
  }
  return backends;
}

json::Value parts_json(const model::WeightInventory& inventory) {
  json::Object parts;
  for (int i = 0; i < model::kNumWeightParts; ++i) {
    const auto part = static_cast<WeightPart>(i);
    const auto& p = inventory[part];
    parts.emplace_back(to_string(part), json::Object{{"tensors", p.tensors},
                                                     {"parameters", p.elements},
                                                     {"bytes", p.bytes},
                                                     {"loaded", is_loaded(part)}});
  }
  return parts;
}

json::Value layers_json(const model::ModelConfig& config) {
  json::Array layers;
  for (const model::LayerConfig& layer : config.layers) {
    layers.push_back(json::Object{{"feed_forward", layer.is_moe ? "moe" : "dense"},
                                  {"indexer", indexer_word(config, layer.owns_indexer)},
                                  {"topk_layer", int64_t{layer.topk_layer}}});
  }
  return layers;
}

json::Value caches_json(const Inspection& in) {
  json::Array caches;
  for (const CacheOption& cache : in.caches) {
    json::Object entry = {{"latent_layout", to_string(cache.latent_layout)},
                          {"index_key_layout", to_string(cache.index_key_layout)},
                          {"latent_bytes_per_token_layer", cache.latent_bytes},
                          {"index_key_bytes_per_token_layer", cache.index_key_bytes},
                          {"bytes_per_token", cache.token_bytes},
                          {"serve_flags", cache.flags}};
    if (in.memory_bytes > 0) entry.emplace_back("tokens_that_fit", cache.plan.num_tokens);
    caches.emplace_back(std::move(entry));
  }
  return caches;
}

}  // namespace

std::string format_layers(const std::vector<int32_t>& layers) {
  constexpr size_t kShown = 5;
  std::vector<std::string> ranges;
  for (size_t i = 0; i < layers.size();) {
    size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    ranges.push_back(end - i == 1 ? std::to_string(layers[i])
                                  : fmt::format("{}-{}", layers[i], layers[end - 1]));
    i = end;
  }
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.size() > kShown && i == kShown - 1) {
      text += ", ...";
      i = ranges.size() - 1;
    }
    text += (i == 0 ? "" : ", ") + ranges[i];
  }
  return text;
}

std::string to_text(const Inspection& in) {
  std::string text = head_text(in) + '\n' + weights_text(in) + '\n' + layers_text(in) + '\n' +
                     caches_text(in) + '\n';
  if (!in.inventory.unknown.empty()) {
    text += fmt::format("{} unknown tensors, the first: {}\n\n", in.inventory.unknown.size(),
                        in.inventory.unknown.front());
  }
  for (const BackendAnswer& backend : in.backends) text += backend_text(backend);
  return text;
}

json::Value to_json(const Inspection& in) {
  const model::ModelConfig& c = in.config;
  json::Array unknown(in.inventory.unknown.begin(), in.inventory.unknown.end());
  json::Object root = {{"path", in.path},
                       {"family", c.family->name},
                       {"architecture", c.architecture},
                       {"model_type", c.model_type},
                       {"tensors", in.num_tensors},
                       {"files", in.num_files},
                       {"bytes", in.total_bytes},
                       {"loaded_bytes", in.inventory.loaded_bytes()},
                       {"has_mtp", in.inventory.has_mtp},
                       {"quantization", c.quantization.quant_method},
                       {"max_position_embeddings", int64_t{c.max_position_embeddings}},
                       {"index_topk", int64_t{c.index_topk}},
                       {"num_indexer_layers", int64_t{c.num_indexer_layers()}},
                       {"parts", parts_json(in.inventory)},
                       {"layers", layers_json(c)},
                       {"caches", caches_json(in)},
                       {"unknown_tensors", std::move(unknown)},
                       {"backends", backends_json(in)}};
  if (in.memory_bytes > 0) {
    root.emplace_back("memory", json::Object{{"bytes", in.memory_bytes},
                                             {"fraction", in.memory_fraction},
                                             {"ranks", int64_t{in.num_ranks}},
                                             {"weight_bytes", in.rank_weight_bytes}});
  }
  return root;
}

}  // namespace winnow::app
