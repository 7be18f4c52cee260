#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace winnow {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without waiting for whoever might write into a pipe of that name.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_error("{}: {}", path, std::strerror(errno));
  struct stat info = {};
  int failure = ::fstat(fd, &info) != 0 ? errno : 0;
  if (failure == 0 && !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw_error("{}: {}", path, S_ISDIR(info.st_mode) ? "is a directory" : "is no regular file");
  }
  if (failure == 0 && info.st_size > 0) {
    void* address =
        ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      failure = errno;
    } else {
      data_ = static_cast<const std::byte*>(address);
      bytes_ = info.st_size;
    }
  }
  ::close(fd);
  if (failure != 0) throw_error("{}: {}", path, std::strerror(failure));
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(bytes_));
  }
}

void MappedFile::read_ahead(const std::byte* begin, int64_t bytes) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(begin) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(bytes);
  void* address = reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
  int result = 0;
  do {
    result = ::madvise(address, end - first, MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) return;
  if (errno == EINVAL) {  // Linux before 5.14: start the reading, wait for nothing
    ::madvise(address, end - first, MADV_WILLNEED);
    return;
  }
  throw_error("{}: cannot be read: {}", path_, std::strerror(errno));
}

std::string read_file(const std::string& path) { return std::string(MappedFile(path).text()); }

}  // namespace winnow
