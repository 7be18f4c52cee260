// cos and sin of every position, computed once in fp32 as the reference implementations do.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "ops/backend.h"

namespace winnow::model {

class RopeTables {
 public:
  // Positions 0 .. max_positions - 1.
  RopeTables(const ModelConfig& config, int32_t max_positions, ops::Backend& backend);

  ops::RopeTable view() const { return {cos_.as<float>(), sin_.as<float>(), dim_}; }

 private:
  int32_t dim_;
  Buffer cos_;  // [max_positions, dim / 2]
  Buffer sin_;
};

}  // namespace winnow::model
