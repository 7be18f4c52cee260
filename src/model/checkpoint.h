// All tensors of a checkpoint folder: model.safetensors, or the shards of
// model.safetensors.index.json. The index says which shard owns a tensor; copies in other shards
// and stray files do not count (fault B77).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/safetensors.h"

namespace winnow::model {

struct CheckpointTensor {
  const TensorEntry* entry = nullptr;
  const SafetensorsFile* file = nullptr;

  const std::string& name() const { return entry->name; }
  const std::byte* data() const { return file->data(*entry); }
};

class Checkpoint {
 public:
  // Opens and checks every file. Throws Error naming file and tensor.
  explicit Checkpoint(const std::string& model_path);

  const std::string& path() const { return path_; }
  // Null when there is none of that name.
  const CheckpointTensor* find(std::string_view name) const;
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  int64_t num_files() const { return static_cast<int64_t>(files_.size()); }
  int64_t total_bytes() const { return total_bytes_; }  // of tensors()
  // Copies in shards that the index does not name for them.
  int64_t num_disowned() const { return num_disowned_; }

 private:
  void open_single(const std::string& file_path);
  void open_sharded(const std::string& index_path);
  void add(const TensorEntry& entry, const SafetensorsFile& file);

  std::string path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<CheckpointTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;  // into tensors_
  int64_t total_bytes_ = 0;
  int64_t num_disowned_ = 0;
};

}  // namespace winnow::model
