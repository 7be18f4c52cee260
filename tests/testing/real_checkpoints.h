// The full tensor lists of real models, derived from their published shapes, as checkpoint folders
// whose headers are real and whose data is a hole in the file: hundreds of GB that take no space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow::testing {

struct ListedTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;

  int64_t elements() const;
  int64_t bytes() const;
};

struct RealCheckpoint {
  std::string config_name;  // tests/data/configs/<config_name>.json
  int num_shards = 0;
  std::vector<ListedTensor> tensors;

  int64_t elements() const;
  int64_t bytes() const;
  // config.json, the shards and their index.
  void write_sparse(const std::string& folder) const;
};

RealCheckpoint deepseek_v32();
RealCheckpoint glm52_fp8();
RealCheckpoint glm51_bf16();
RealCheckpoint kimi_k2();

}  // namespace winnow::testing
