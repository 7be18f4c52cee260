// Typed reading of request fields. A reader keeps the first thing that is wrong and names the
// field, the limit and the value; after it every read gives the default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace winnow::server {

// 400 for a body that is no JSON object within the limits.
Result<json::Value> parse_object(std::string_view body);

struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_excluded = false;
};

// JSON null and a missing key both mean "not given". Whole numbers such as 5.0 are integers.
class ObjectReader {
 public:
  // path: where the object stands, "" for the body, else "sampling_params".
  explicit ObjectReader(const json::Value& object, std::string path = "");

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // Keeps the first failure only. The message comes after the field's name.
  void fail(std::string_view key, std::string_view message);
  void fail(Status status);

  const json::Value* find(std::string_view key);
  bool boolean(std::string_view key, bool fallback);
  std::optional<int64_t> integer(std::string_view key, int64_t min, int64_t max);
  std::optional<double> number(std::string_view key, NumberRange range);
  std::optional<std::string> string(std::string_view key, int64_t max_bytes = INT64_MAX);
  const json::Object* object(std::string_view key);
  const json::Array* array(std::string_view key, int64_t max_items);
  // "x" or ["x", "y"].
  std::vector<std::string> strings(std::string_view key, int64_t max_items, int64_t max_bytes);
  // [1, 2], each in [0, limit); a single integer counts as a list of one.
  std::vector<int32_t> ids(std::string_view key, int64_t max_items, int64_t limit);
  // A list of such lists.
  std::vector<std::vector<int32_t>> id_lists(std::string_view key,
                                             int64_t max_lists,
                                             int64_t limit);

  // Fails when the field is given: it asks for what this server cannot do.
  void refuse(std::string_view key, std::string_view why = "is not supported yet");
  // Fails on the first member that nothing above has asked for.
  void refuse_unknown();

  // "sampling_params.top_p"
  std::string name(std::string_view key) const;

 private:
  void fail_kind(std::string_view key, const json::Value& value, std::string_view expected);
  void fail_range(std::string_view key, std::string range, std::string value);

  const json::Object* members_ = nullptr;
  std::string path_;
  std::vector<std::string_view> known_;
  Status status_;
};

// The integer in a number without a fraction; nothing for anything else.
std::optional<int64_t> whole_number(const json::Value& value);

}  // namespace winnow::server
