#include "backends/cpu/cpu_backend.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "backends/backends.h"
#include "base/error.h"

namespace winnow::backends {

int64_t CpuBackend::free_memory_bytes() const {
  // MemAvailable counts the page cache that the kernel would give up; free pages alone do not.
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Buffer CpuBackend::allocate(int64_t bytes) {
  WINNOW_CHECK(bytes >= 0, "bytes {}", bytes);
  const int64_t rounded = (bytes + 63) / 64 * 64;
  if (rounded == 0) return {};
  // aligned_alloc promises more than there is, and touching it would end the process.
  constexpr int64_t kWorthAsking = 64 << 20;
  if (rounded >= kWorthAsking && rounded > free_memory_bytes()) {
    throw_error("cpu backend: no memory for {} MiB, {} MiB are available", rounded >> 20,
                free_memory_bytes() >> 20);
  }
  // Fresh large allocations come zeroed from the kernel, but aligned_alloc may hand out used ones.
  void* data = std::aligned_alloc(64, static_cast<size_t>(rounded));
  if (data == nullptr) throw_error("cpu backend: no memory for {} bytes", bytes);
  std::memset(data, 0, static_cast<size_t>(rounded));
  return {data, bytes, [](void* p) { std::free(p); }};
}

void CpuBackend::upload(void* to, const void* from_host, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from_host, static_cast<size_t>(bytes));
}

void CpuBackend::download(void* to_host, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to_host, from, static_cast<size_t>(bytes));
}

void CpuBackend::prepare(const ops::ModelShape& shape) {
  workspace_.size_for(shape, pool_.num_threads());
}

std::unique_ptr<ops::Backend> make_cpu(int num_threads) {
  return std::make_unique<CpuBackend>(num_threads);
}

}  // namespace winnow::backends
