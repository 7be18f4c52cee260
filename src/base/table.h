// Aligned columns for people: inspect, bench and eval print with it.
#pragma once

#include <string>
#include <vector>

namespace winnow {

class Table {
 public:
  // A title that starts with '>' makes a right-aligned column: {"part", ">bytes"}.
  explicit Table(const std::vector<std::string>& titles);

  // As many cells as titles.
  void add_row(std::vector<std::string> cells);
  // Lines ended by '\n', each indented; columns two spaces apart, no spaces at line ends.
  std::string to_text(int indent = 0) const;

 private:
  std::vector<bool> right_aligned_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

// 118629 -> "118,629"
std::string with_thousands(long long value);

}  // namespace winnow
