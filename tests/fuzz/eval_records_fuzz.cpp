// First byte: CSV, JSON lines or a line of a samples file. Data sets from anywhere are read or
// refused with one line that names the file.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "eval/csv.h"
#include "eval/records.h"
#include "eval/sample_file.h"

using namespace winnow;
using namespace winnow::eval;

namespace {

std::string quoted(std::string_view field) {
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  return out + "\"";
}

// What was read, written with quotes everywhere, reads the same.
void read_csv(std::string_view text) {
  const auto records = parse_csv(text);
  if (!records.ok()) return;
  std::string written;
  for (const CsvRecord& record : records.value()) {
    for (size_t i = 0; i < record.fields.size(); ++i) {
      if (i > 0) written.push_back(',');
      written += quoted(record.fields[i]);
    }
    written.push_back('\n');
  }
  const auto again = parse_csv(written);
  WINNOW_CHECK(again.ok() && again.value().size() == records.value().size(), "{}", written);
  for (size_t i = 0; i < again.value().size(); ++i) {
    WINNOW_CHECK(again.value()[i].fields == records.value()[i].fields, "record {}", i);
  }
}

template <typename Read>
void refuse_in_one_line(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    WINNOW_CHECK(std::string_view(error.what()).starts_with("name"), "{}", error.what());
  }
}

void read_sample(std::string_view text) {
  const auto value = json::parse(text);
  if (!value.ok()) return;
  (void)header_from_json(value.value());
  const auto sample = sample_from_json(value.value());
  if (!sample.ok()) return;
  const auto again = sample_from_json(to_json(sample.value()));
  WINNOW_CHECK(again.ok(), "{}", text);
  WINNOW_CHECK(json::dump(to_json(again.value())) == json::dump(to_json(sample.value())), "{}",
               text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_csv(text);
      break;
    case 1:
      refuse_in_one_line([&] { csv_records("name", text); });
      break;
    case 2:
      refuse_in_one_line([&] { json_records("name", text); });
      break;
    default:
      read_sample(text);
  }
  return 0;
}
