// Writes a safetensors file tensor by tensor, so that a long score run holds one case in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace winnow::model {

class SafetensorsWriter {
 public:
  // Data goes to path + ".data" until finish(). Throws Error when it cannot be written.
  explicit SafetensorsWriter(std::string path);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Only f32, i32 and u8 tensors are written by anybody here.
  void add(const std::string& name, DType dtype, std::vector<int64_t> shape, const void* data);
  // Header and data become the file at path.
  void finish();

 private:
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    int64_t begin;
    int64_t end;
  };
  std::string header() const;

  std::string path_;
  int data_fd_ = -1;
  int64_t bytes_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace winnow::model
