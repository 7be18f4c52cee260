// One .safetensors file, mapped: 8 bytes header length (little endian), a JSON header
// {name: {dtype, shape, data_offsets}}, then the data. Everything the header says is checked before
// a tensor can be asked for: a short or damaged file must never reach the arithmetic (fault B76).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/dtype.h"

namespace winnow::model {

struct TensorEntry {
  std::string name;
  std::string dtype_name;      // as the file spells it: "BF16", "F8_E4M3"
  std::optional<DType> dtype;  // none: a valid safetensors type that no weight of ours has
  std::vector<int64_t> shape;
  int64_t begin = 0;  // byte offsets into the data section
  int64_t end = 0;

  int64_t bytes() const { return end - begin; }
  int64_t elements() const;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by ascending offset
  int64_t data_offset = 0;           // of the data section, in the file
};

// Throws Error naming path and tensor. file_begin holds at least the first
// min(file_bytes, 8 + header length) bytes of a file of file_bytes.
SafetensorsHeader parse_safetensors_header(std::string_view file_begin,
                                           int64_t file_bytes,
                                           const std::string& path);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t file_bytes() const { return file_.bytes(); }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const std::byte* data(const TensorEntry& tensor) const {
    return file_.data() + header_.data_offset + tensor.begin;
  }
  void read_ahead(const TensorEntry& tensor) const {
    if (tensor.bytes() > 0) file_.read_ahead(data(tensor), tensor.bytes());
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

// "[4096, 512]"
std::string format_shape(const std::vector<int64_t>& shape);

}  // namespace winnow::model
