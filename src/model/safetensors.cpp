#include "model/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/json.h"

namespace winnow::model {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian");

constexpr int64_t kLengthBytes = 8;
// The reference reader's limit; real headers are below 2 MB.
constexpr int64_t kMaxHeaderBytes = 100'000'000;

struct FileType {
  const char* name;
  int64_t bytes;
  std::optional<DType> dtype;
};

const FileType kFileTypes[] = {
    {"F32", 4, DType::kF32},      {"BF16", 2, DType::kBf16}, {"F16", 2, DType::kF16},
    {"F8_E4M3", 1, DType::kE4m3}, {"I64", 8, DType::kI64},   {"I32", 4, DType::kI32},
    {"U8", 1, DType::kU8},        {"F64", 8, std::nullopt},  {"I16", 2, std::nullopt},
    {"I8", 1, std::nullopt},      {"U16", 2, std::nullopt},  {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt},     {"BOOL", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt}, {"C64", 8, std::nullopt},
};

const FileType* find_type(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

// Bytes of a tensor; none where the product leaves 64 bits.
std::optional<int64_t> byte_count(const std::vector<int64_t>& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

class HeaderReader {
 public:
  HeaderReader(const std::string& path, int64_t data_bytes)
      : path_(path), data_bytes_(data_bytes) {}

  TensorEntry read(const std::string& name, const json::Value& value) const {
    TensorEntry tensor;
    tensor.name = name;
    const json::Value* dtype = value.find("dtype");
    const json::Value* shape = value.find("shape");
    const json::Value* offsets = value.find("data_offsets");
    if (dtype == nullptr || !dtype->is_string()) refuse(name, "has no dtype");
    if (shape == nullptr || !shape->is_array()) refuse(name, "has no shape");
    if (offsets == nullptr || !offsets->is_array() || offsets->as_array().size() != 2) {
      refuse(name, "has no pair of data_offsets");
    }
    tensor.dtype_name = dtype->as_string();
    const FileType* type = find_type(tensor.dtype_name);
    if (type == nullptr)
      refuse(name, fmt::format("has the unknown dtype \"{}\"", tensor.dtype_name));
    tensor.dtype = type->dtype;
    for (const json::Value& extent : shape->as_array()) {
      if (!extent.is_integer() || extent.as_integer() < 0) refuse(name, "has a bad shape");
      tensor.shape.push_back(extent.as_integer());
    }
    const json::Array& pair = offsets->as_array();
    if (!pair[0].is_integer() || !pair[1].is_integer()) refuse(name, "has bad data_offsets");
    tensor.begin = pair[0].as_integer();
    tensor.end = pair[1].as_integer();
    check_range(tensor, type->bytes);
    return tensor;
  }

 private:
  void check_range(const TensorEntry& tensor, int64_t element_bytes) const {
    if (tensor.begin < 0 || tensor.end < tensor.begin) {
      refuse(tensor.name,
             fmt::format("has reversed data_offsets [{}, {}]", tensor.begin, tensor.end));
    }
    if (tensor.end > data_bytes_) {
      refuse(tensor.name,
             fmt::format("ends at byte {} of the data, but the file holds {} (truncated?)",
                         tensor.end, data_bytes_));
    }
    const auto bytes = byte_count(tensor.shape, element_bytes);
    if (!bytes || *bytes != tensor.bytes()) {
      refuse(tensor.name, fmt::format("{} {} does not match its {} bytes", tensor.dtype_name,
                                      format_shape(tensor.shape), tensor.bytes()));
    }
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw_error("{}: tensor {} {}", path_, name, what);
  }

  const std::string& path_;
  int64_t data_bytes_;
};

// The data section is covered exactly, as the format demands.
void check_coverage(const std::vector<TensorEntry>& tensors,
                    int64_t data_bytes,
                    const std::string& path) {
  int64_t covered = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& tensor = tensors[i];
    if (tensor.begin < covered) {
      throw_error("{}: tensor {} overlaps tensor {}", path, tensor.name, tensors[i - 1].name);
    }
    if (tensor.begin > covered) {
      throw_error("{}: {} unused bytes before tensor {}", path, tensor.begin - covered,
                  tensor.name);
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw_error("{}: {} bytes behind the last tensor {}", path, data_bytes - covered,
                tensors.empty() ? "" : tensors.back().name);
  }
}

}  // namespace

int64_t TensorEntry::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string format_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsHeader parse_safetensors_header(std::string_view file_begin,
                                           int64_t file_bytes,
                                           const std::string& path) {
  if (file_bytes < kLengthBytes) {
    throw_error("{}: {} bytes are too few for a safetensors file", path, file_bytes);
  }
  uint64_t length = 0;
  std::memcpy(&length, file_begin.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(file_bytes - kLengthBytes)) {
    throw_error("{}: the header of {} bytes reaches beyond the file of {}", path, length,
                file_bytes);
  }
  if (length < 2 || length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    throw_error("{}: a header of {} bytes is no safetensors header", path, length);
  }
  const std::string_view text = file_begin.substr(kLengthBytes, length);
  if (text.front() != '{') throw_error("{}: the header does not start with '{{'", path);
  auto parsed = json::parse(text);
  if (!parsed.ok()) throw_error("{}: header: {}", path, parsed.status().message);

  SafetensorsHeader header;
  header.data_offset = kLengthBytes + static_cast<int64_t>(length);
  const int64_t data_bytes = file_bytes - header.data_offset;
  const HeaderReader reader(path, data_bytes);
  for (const auto& [name, value] : parsed.value().as_object()) {
    if (name != "__metadata__") header.tensors.push_back(reader.read(name, value));
  }
  // Empty tensors go before the one that starts at the same byte.
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_coverage(header.tensors, data_bytes, path);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), header_(parse_safetensors_header(file_.text(), file_.bytes(), path)) {}

}  // namespace winnow::model
