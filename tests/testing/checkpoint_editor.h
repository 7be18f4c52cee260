// A checkpoint in memory: read from a folder, changed tensor by tensor, written back as one file or
// as as shards with an index.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::testing {

struct EditableTensor {
  std::string dtype;  // as safetensors spells it
  std::vector<int64_t> shape;
  std::string bytes;

  static EditableTensor f32(std::vector<int64_t> shape, const std::vector<float>& values);
  // values rounded to bf16.
  static EditableTensor bf16(std::vector<int64_t> shape, const std::vector<float>& values);
  static EditableTensor e4m3(std::vector<int64_t> shape, const std::vector<float>& values);
};

class CheckpointEditor {
 public:
  // Reads folder/model.safetensors and config.json.
  explicit CheckpointEditor(const std::string& folder);

  std::map<std::string, EditableTensor> tensors;
  json::Value config;

  // config.json and model.safetensors.
  void write(const std::string& folder) const;
  // Only config.json.
  void write_config(const std::string& folder) const;
};

// One safetensors file of these tensors, in the map's order.
std::string safetensors_bytes(const std::map<std::string, EditableTensor>& tensors);
// The same framing around any header text.
std::string safetensors_bytes(std::string_view header, std::string_view data);

}  // namespace winnow::testing
