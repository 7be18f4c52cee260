// Selection by the contract: larger score first, equal scores lower position first, NaN as -inf.
#pragma once

#include <cstdint>

namespace winnow::backends {

// Calls for count > k: writes the positions of the k best of scores[0..count), ascending. O(count),
// independent of ties; no memory but the stack.
void best_positions(const float* scores, int64_t count, int64_t k, int32_t* positions);

}  // namespace winnow::backends
