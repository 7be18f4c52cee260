#include "eval/csv.h"

namespace winnow::eval {
namespace {

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Result<std::vector<CsvRecord>> read() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      CsvRecord record{.line = line_, .fields = {}};
      if (Status status = read_record(record); !status.ok()) return status;
      const bool empty_line = record.fields.size() == 1 && record.fields[0].empty() && !quoted_;
      if (!empty_line) records.push_back(std::move(record));
    }
    return records;
  }

 private:
  Status read_record(CsvRecord& record) {
    quoted_ = false;
    while (true) {
      record.fields.emplace_back();
      if (Status status = read_field(record.fields.back()); !status.ok()) return status;
      if (at_ == text_.size() || text_[at_] != ',') break;
      ++at_;
    }
    take_line_end();
    return {};
  }

  Status read_field(std::string& field) {
    if (at_ < text_.size() && text_[at_] == '"') {
      quoted_ = true;
      if (Status status = read_quoted(field); !status.ok()) return status;
    }
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
      field.push_back(text_[at_++]);
    }
    return {};
  }

  Status read_quoted(std::string& field) {
    const int64_t opened_line = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        const bool doubled = at_ + 1 < text_.size() && text_[at_ + 1] == '"';
        ++at_;
        if (!doubled) return {};
      } else if (text_[at_] == '\n') {
        ++line_;
      }
      field.push_back(text_[at_]);
    }
    return invalid_argument("", "line {}: the quote that opens here is never closed", opened_line);
  }

  void take_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool quoted_ = false;  // some field of the record is
};

}  // namespace

Result<std::vector<CsvRecord>> parse_csv(std::string_view text) { return CsvReader(text).read(); }

}  // namespace winnow::eval
