// The rows of a data set: named fields, and the place to point at when one is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::eval {

class Record {
 public:
  Record(std::string where, json::Value fields)
      : where_(std::move(where)), fields_(std::move(fields)) {}

  const std::string& where() const { return where_; }  // "test.jsonl:17"
  // A field that must be there, as text; numbers are printed. Throws Error naming place and field.
  std::string text(std::string_view field) const;
  // The same; "" where the field is missing or null.
  std::string text_or_empty(std::string_view field) const;

 private:
  const json::Value* find(std::string_view field) const;

  std::string where_;
  json::Value fields_;
};

// Columns are named by the first line. Throws Error naming the file, line and column.
std::vector<Record> csv_records(const std::string& name, std::string_view content);
// One object a line, or one array of objects; lines with spaces only are skipped. Throws Error
// naming the file and line.
std::vector<Record> json_records(const std::string& name, std::string_view content);
// By the file name's ending: .csv, .jsonl or .json. Throws Error.
std::vector<Record> read_records(const std::string& path);

}  // namespace winnow::eval
