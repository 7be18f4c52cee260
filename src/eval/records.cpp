#include "eval/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "eval/csv.h"

namespace winnow::eval {

const json::Value* Record::find(std::string_view field) const {
  const json::Value* value = fields_.find(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Record::text(std::string_view field) const {
  const json::Value* value = find(field);
  if (value == nullptr) throw_error("{}: no field \"{}\"", where_, field);
  if (value->is_string()) return value->as_string();
  if (value->is_number() || value->is_bool()) return json::dump(*value);
  throw_error("{}: \"{}\" must be text, got {}", where_, field, value->kind_name());
}

std::string Record::text_or_empty(std::string_view field) const {
  return find(field) == nullptr ? std::string() : text(field);
}

std::vector<Record> csv_records(const std::string& name, std::string_view content) {
  Result<std::vector<CsvRecord>> parsed = parse_csv(content);
  if (!parsed.ok()) throw_error("{}: {}", name, parsed.status().message);
  if (parsed.value().empty()) throw_error("{}: no line with the columns' names", name);
  const CsvRecord& header = parsed.value().front();
  for (auto field = header.fields.begin(); field != header.fields.end(); ++field) {
    if (std::find(header.fields.begin(), field, *field) != field) {
      throw_error("{}:{}: two columns have the name \"{}\"", name, header.line, *field);
    }
  }
  std::vector<Record> records;
  for (size_t i = 1; i < parsed.value().size(); ++i) {
    CsvRecord& row = parsed.value()[i];
    if (row.fields.size() != header.fields.size()) {
      throw_error("{}:{}: {} fields, but {} columns", name, row.line, row.fields.size(),
                  header.fields.size());
    }
    json::Object fields;
    for (size_t c = 0; c < row.fields.size(); ++c) {
      if (!is_valid_utf8(row.fields[c])) {
        throw_error("{}:{}: \"{}\" is not valid UTF-8", name, row.line, header.fields[c]);
      }
      fields.emplace_back(header.fields[c], std::move(row.fields[c]));
    }
    records.emplace_back(fmt::format("{}:{}", name, row.line), std::move(fields));
  }
  return records;
}

namespace {

std::vector<Record> array_records(const std::string& name, std::string_view content) {
  Result<json::Value> parsed = json::parse(content, {.reject_duplicate_keys = false});
  if (!parsed.ok()) throw_error("{}: {}", name, parsed.status().message);
  std::vector<Record> records;
  for (json::Value& item : parsed.value().as_array()) {
    std::string where = fmt::format("{}: item {}", name, records.size());
    if (!item.is_object()) throw_error("{} must be an object, got {}", where, item.kind_name());
    records.emplace_back(std::move(where), std::move(item));
  }
  return records;
}

}  // namespace

std::vector<Record> json_records(const std::string& name, std::string_view content) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t first = content.find_first_not_of(kSpaces);
  if (first != std::string_view::npos && content[first] == '[') {
    return array_records(name, content);
  }
  std::vector<Record> records;
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.find_first_not_of(kSpaces) == std::string_view::npos) continue;
    std::string where = fmt::format("{}:{}", name, number);
    Result<json::Value> parsed = json::parse(line, {.reject_duplicate_keys = false});
    if (!parsed.ok()) throw_error("{}: {}", where, parsed.status().message);
    if (!parsed.value().is_object()) {
      throw_error("{}: must be an object, got {}", where, parsed.value().kind_name());
    }
    records.emplace_back(std::move(where), std::move(parsed.value()));
  }
  return records;
}

std::vector<Record> read_records(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string content = read_file(path);
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  if (path.ends_with(".csv")) return csv_records(path, content);
  if (path.ends_with(".jsonl") || path.ends_with(".json")) return json_records(path, content);
  throw_error("{}: the name must end in .csv, .jsonl or .json", path);
}

}  // namespace winnow::eval
