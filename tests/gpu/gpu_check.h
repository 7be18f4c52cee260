// What the GPU checks share: error checks, device buffers, timing, receipts. A check is one .cu
// file here with one or more functions listed in main.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define CUDA_OK(call)                                                    \
  do {                                                                   \
    const cudaError_t error_ = (call);                                   \
    if (error_ != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(error_));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

namespace winnow::gpu_check {

// One timed case. flops and bytes: what it must do at the least; they give its floor.
struct Rate {
  float us = 0;        // cold: the L2 overwritten before; 0: not timed so
  float graph_us = 0;  // a call in a captured graph, warm; 0: not timed so
  double flops = 0;
  double bytes = 0;   // read once from device memory, and written
  bool e4m3 = false;  // on the e4m3 tensor cores
  std::string note = {};
};

struct Context {
  bool small = false;              // the subset that a sanitizer finishes in two minutes
  bool bench = false;              // time as well
  bool bench_only = false;         // no checks
  FILE* receipt = nullptr;         // one JSON object a line, or null
  std::vector<std::string> only;   // time the cases whose name has one of these; empty: all
  std::vector<std::string> timed;  // names of the cases that record has seen
  int failures = 0;
  int checks = 0;

  // Is the case of this name to be timed?
  bool wants(const std::string& name) const;
  // Counts, prints what failed, writes the receipt line.
  void expect(bool ok, const std::string& name, const std::string& detail);
  // Prints a line of time, rate and part of the floor; writes the receipt line.
  void record(const std::string& name, const Rate& rate);
};

struct Check {
  const char* name;
  void (*run)(Context&);
};

// Device memory that is filled with 0xff (NaN in bf16, fp32 and e4m3; -1 in int32) when it is made.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count = 0) : count_(count) {
    if (count == 0) return;
    CUDA_OK(cudaMalloc(&data_, count * sizeof(T)));
    CUDA_OK(cudaMemset(data_, 0xff, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) { upload(host); }
  DeviceArray(DeviceArray&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
  }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }
  size_t size() const { return count_; }
  void poison() { CUDA_OK(cudaMemset(data_, 0xff, count_ * sizeof(T))); }
  void upload(const std::vector<T>& host) {
    CUDA_OK(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    CUDA_OK(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

// Median of `repeats` event-timed calls after warm-up, the L2 overwritten before each.
float median_us_cold(const std::function<void(cudaStream_t)>& call, int repeats = 10);
// Microseconds a call in a CUDA graph of `calls` copies: what launch overhead cannot hide. The
// calls see a warm L2 unless they take turns among inputs (the argument is the call's index).
float us_in_graph(const std::function<void(cudaStream_t, int)>& call, int calls = 40);

// Deterministic random numbers for inputs, the same on every machine.
inline uint32_t hash32(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(x ^ (x >> 31));
}

}  // namespace winnow::gpu_check
