// A file mapped read-only into memory. The pages come in as they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace winnow {

class MappedFile {
 public:
  // Throws Error naming the path and the system's reason.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Reads the pages of [begin, begin + bytes) in now, so that no later access waits for the disk.
  // Throws Error when they cannot be read.
  void read_ahead(const std::byte* begin, int64_t bytes) const;
  std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), static_cast<size_t>(bytes_)};
  }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;  // null when the file is empty
  int64_t bytes_ = 0;
};

// The whole content of a small file. Throws Error naming the path.
std::string read_file(const std::string& path);

}  // namespace winnow
