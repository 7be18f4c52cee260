// Comma-separated values as spreadsheets and Python's csv write them: quoted fields may hold
// commas, doubled quotes and line ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace winnow::eval {

struct CsvRecord {
  int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Empty lines are skipped, a byte-order mark as well. What follows a closing quote joins the field,
// as Python has it. kInvalidArgument for a quote that is never closed, with its line.
Result<std::vector<CsvRecord>> parse_csv(std::string_view text);

}  // namespace winnow::eval
