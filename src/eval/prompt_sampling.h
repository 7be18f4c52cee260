// Which rows are asked, in which order: as the reference draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/python_random.h"

namespace winnow::eval {

// random.sample(rows, count), which also reorders; all rows in file order where count is 0.
// Throws Error when there are fewer.
template <typename T>
std::vector<T> sampled(std::vector<T> rows, int64_t count, bench::PythonRandom& random) {
  if (count == 0) return rows;
  if (count > static_cast<int64_t>(rows.size())) {
    throw_error("{} questions are asked for: the data set has {}", count, rows.size());
  }
  std::vector<T> chosen;
  for (const size_t i : random.sample(rows.size(), static_cast<size_t>(count))) {
    chosen.push_back(std::move(rows[i]));
  }
  return chosen;
}

}  // namespace winnow::eval
