#include "base/table.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace winnow {

namespace {

// Columns that a terminal shows for UTF-8 text without wide characters.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

Table::Table(const std::vector<std::string>& titles) {
  std::vector<std::string> cells;
  for (const std::string& title : titles) {
    right_aligned_.push_back(title.starts_with('>'));
    cells.push_back(right_aligned_.back() ? title.substr(1) : title);
  }
  rows_.push_back(std::move(cells));
}

void Table::add_row(std::vector<std::string> cells) {
  WINNOW_CHECK(cells.size() == right_aligned_.size(), "{} cells for {} columns", cells.size(),
               right_aligned_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::to_text(int indent) const {
  std::vector<size_t> widths(right_aligned_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(static_cast<size_t>(indent), ' ');
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += right_aligned_[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string with_thousands(long long value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

}  // namespace winnow
