#include "model/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/json.h"

namespace winnow::model {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kListed = 3;  // names shown of a longer list

using WeightMap = std::unordered_map<std::string, std::string>;

std::string first_of(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kListed);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Shard names come from the index: they must stay inside the folder.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

WeightMap read_weight_map(const std::string& index_path) {
  auto parsed = json::parse(read_file(index_path));
  if (!parsed.ok()) throw_error("{}: {}", index_path, parsed.status().message);
  const json::Value* map = parsed.value().find("weight_map");
  if (map == nullptr || !map->is_object() || map->as_object().empty()) {
    throw_error("{}: no weight_map", index_path);
  }
  WeightMap weight_map;
  weight_map.reserve(map->as_object().size());
  for (const auto& [name, file] : map->as_object()) {
    if (!file.is_string() || !is_plain_file_name(file.as_string())) {
      throw_error("{}: tensor {} has no shard name", index_path, name);
    }
    weight_map.emplace(name, file.as_string());
  }
  return weight_map;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& model_path) : path_(model_path) {
  const fs::path folder(model_path);
  const fs::path index = folder / kIndexFile, single = folder / kSingleFile;
  if (fs::exists(index)) {
    open_sharded(index.string());
  } else if (fs::exists(single)) {
    open_single(single.string());
  } else {
    throw_error("{}: neither {} nor {} is there", model_path, kSingleFile, kIndexFile);
  }
}

void Checkpoint::open_single(const std::string& file_path) {
  files_.push_back(std::make_unique<SafetensorsFile>(file_path));
  for (const TensorEntry& entry : files_.back()->tensors()) add(entry, *files_.back());
}

void Checkpoint::open_sharded(const std::string& index_path) {
  const WeightMap weight_map = read_weight_map(index_path);
  std::map<std::string, int64_t> shards;  // in order of name -> tensors still to be found
  for (const auto& [name, shard] : weight_map) ++shards[shard];

  std::vector<std::string> missing;
  for (const auto& [shard, count] : shards) {
    if (!fs::exists(fs::path(path_) / shard)) missing.push_back(shard);
  }
  if (!missing.empty()) {
    throw_error("{}: {} of {} shards missing: {}", path_, missing.size(), shards.size(),
                first_of(missing));
  }
  tensors_.reserve(weight_map.size());
  index_.reserve(weight_map.size());
  for (auto& [shard, count] : shards) {
    files_.push_back(std::make_unique<SafetensorsFile>((fs::path(path_) / shard).string()));
    for (const TensorEntry& entry : files_.back()->tensors()) {
      auto owner = weight_map.find(entry.name);
      if (owner != weight_map.end() && owner->second == shard) {
        add(entry, *files_.back());
        --count;
      } else {
        ++num_disowned_;
      }
    }
  }
  for (const auto& [name, shard] : weight_map) {
    if (shards[shard] > 0 && find(name) == nullptr) missing.push_back(name);
  }
  if (!missing.empty()) {
    std::sort(missing.begin(), missing.end());
    throw_error("{}: the index names tensors that {} does not hold: {}", path_,
                weight_map.at(missing.front()), first_of(missing));
  }
}

void Checkpoint::add(const TensorEntry& entry, const SafetensorsFile& file) {
  index_.emplace(entry.name, tensors_.size());
  tensors_.push_back({&entry, &file});
  total_bytes_ += entry.bytes();
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace winnow::model
