#include "model/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace winnow::model {

namespace {

int create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw_error("{}: cannot be created: {}", path, std::strerror(errno));
  return fd;
}

void write_all(int fd, const void* data, int64_t bytes, const std::string& path) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, next, static_cast<size_t>(bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_error("{}: write failed: {}", path, std::strerror(errno));
    next += written;
    bytes -= written;
  }
}

const char* format_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kI32:
      return "I32";
    case DType::kU8:
      return "U8";
    default:
      break;
  }
  WINNOW_CHECK(false, "dtype {}", to_string(dtype));
  return "";
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path)
    : path_(std::move(path)), data_fd_(create(path_ + ".data")) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (data_fd_ < 0) return;
  ::close(data_fd_);
  ::unlink((path_ + ".data").c_str());
}

void SafetensorsWriter::add(const std::string& name,
                            DType dtype,
                            std::vector<int64_t> shape,
                            const void* data) {
  int64_t bytes = bytes_of(dtype);
  for (const int64_t dim : shape) bytes *= dim;
  write_all(data_fd_, data, bytes, path_);
  entries_.push_back({name, dtype, std::move(shape), bytes_, bytes_ + bytes});
  bytes_ += bytes;
}

std::string SafetensorsWriter::header() const {
  json::Object header;
  for (const Entry& entry : entries_) {
    json::Array shape(entry.shape.begin(), entry.shape.end());
    header.emplace_back(entry.name,
                        json::Object{{"dtype", format_name(entry.dtype)},
                                     {"shape", std::move(shape)},
                                     {"data_offsets", json::Array{entry.begin, entry.end}}});
  }
  std::string text = json::dump(json::Value(std::move(header)));
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts 8-byte aligned
  return text;
}

void SafetensorsWriter::finish() {
  const std::string text = header();
  const int fd = create(path_);
  const auto size = static_cast<uint64_t>(text.size());
  write_all(fd, &size, sizeof size, path_);
  write_all(fd, text.data(), static_cast<int64_t>(text.size()), path_);
  std::vector<char> block(1 << 20);
  ::lseek(data_fd_, 0, SEEK_SET);
  while (true) {
    const ssize_t got = ::read(data_fd_, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_error("{}.data: read failed: {}", path_, std::strerror(errno));
    if (got == 0) break;
    write_all(fd, block.data(), got, path_);
  }
  if (::close(fd) != 0) throw_error("{}: close failed: {}", path_, std::strerror(errno));
}

}  // namespace winnow::model
