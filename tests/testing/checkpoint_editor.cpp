#include "testing/checkpoint_editor.h"

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"
#include "layout/float_formats.h"
#include "model/safetensors.h"

namespace winnow::testing {

namespace {

void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.good()) throw_error("{}: cannot be written", path);
}

template <typename T, typename Convert>
std::string pack(const std::vector<float>& values, Convert convert) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T bits = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &bits, sizeof(T));
  }
  return bytes;
}

}  // namespace

EditableTensor EditableTensor::f32(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {"F32", std::move(shape), pack<float>(values, [](float v) { return v; })};
}

EditableTensor EditableTensor::bf16(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {"BF16", std::move(shape), pack<uint16_t>(values, layout::f32_to_bf16)};
}

EditableTensor EditableTensor::e4m3(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {"F8_E4M3", std::move(shape), pack<uint8_t>(values, layout::f32_to_e4m3)};
}

CheckpointEditor::CheckpointEditor(const std::string& folder) {
  const model::SafetensorsFile file(folder + "/model.safetensors");
  for (const model::TensorEntry& entry : file.tensors()) {
    const auto* data = reinterpret_cast<const char*>(file.data(entry));
    tensors[entry.name] = {entry.dtype_name, entry.shape,
                           std::string(data, static_cast<size_t>(entry.bytes()))};
  }
  config = json::parse(read_file(folder + "/config.json")).value();
}

void CheckpointEditor::write(const std::string& folder) const {
  write_config(folder);
  write_bytes(folder + "/model.safetensors", safetensors_bytes(tensors));
}

void CheckpointEditor::write_config(const std::string& folder) const {
  write_bytes(folder + "/config.json", json::dump(config));
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}

std::string safetensors_bytes(const std::map<std::string, EditableTensor>& tensors) {
  json::Object header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    json::Array shape(tensor.shape.begin(), tensor.shape.end());
    const auto begin = static_cast<int64_t>(data.size());
    data += tensor.bytes;
    header.emplace_back(
        name,
        json::Object{{"dtype", tensor.dtype},
                     {"shape", std::move(shape)},
                     {"data_offsets", json::Array{begin, static_cast<int64_t>(data.size())}}});
  }
  std::string text = json::dump(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // as real writers do, to align the data
  return safetensors_bytes(text, data);
}

}  // namespace winnow::testing
