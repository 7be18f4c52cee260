#include "server/protocol_reader.h"

#include <algorithm>
#include <cmath>

#include "server/limits.h"

namespace winnow::server {
namespace {

std::string shown(double value) {
  std::string out;
  json::append_double(out, value);
  return out;
}

// Values in messages stay short whatever the client sent.
std::string shown(const json::Value& value) {
  constexpr size_t kMaxShown = 60;
  if (value.is_array() || value.is_object()) return value.kind_name();
  std::string out = json::dump(value);
  if (out.size() > kMaxShown) return value.kind_name();
  return out;
}

// As many as values, or more: every value but the first stands behind a comma or a bracket.
size_t bound_on_values(std::string_view body) {
  size_t count = 1;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\') ++i;  // only strings have it
    if (!in_string && (c == ',' || c == '[' || c == '{')) ++count;
  }
  return count;
}

}  // namespace

Result<json::Value> parse_object(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == body.npos) {
    return invalid_argument("", "the request body is empty; it must be a JSON object");
  }
  if (body.size() > kMaxJsonValues && bound_on_values(body) > kMaxJsonValues) {
    return Status{StatusCode::kTooLarge,
                  fmt::format("the request body holds more than {} JSON values", kMaxJsonValues),
                  ""};
  }
  Result<json::Value> parsed = json::parse(body, {.max_depth = kMaxJsonDepth});
  if (!parsed.ok()) return parsed;
  if (!parsed.value().is_object()) {
    return invalid_argument("", "the request body must be a JSON object, not {}",
                            parsed.value().kind_name());
  }
  return parsed;
}

std::optional<int64_t> whole_number(const json::Value& value) {
  if (value.is_integer()) return value.as_integer();
  if (!value.is_double()) return std::nullopt;
  const double number = value.as_number();
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (number != std::floor(number) || std::abs(number) > kExact) return std::nullopt;
  return static_cast<int64_t>(number);
}

ObjectReader::ObjectReader(const json::Value& object, std::string path) : path_(std::move(path)) {
  if (object.is_object()) {
    members_ = &object.as_object();
  } else {
    status_ = invalid_argument(path_, "{} must be an object, not {}",
                               path_.empty() ? "the request" : path_, object.kind_name());
  }
}

std::string ObjectReader::name(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void ObjectReader::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void ObjectReader::fail(std::string_view key, std::string_view message) {
  fail(invalid_argument(name(key), "{} {}", name(key), message));
}

void ObjectReader::fail_kind(std::string_view key,
                             const json::Value& value,
                             std::string_view expected) {
  fail(key, fmt::format("must be {}, got {}", expected, shown(value)));
}

void ObjectReader::fail_range(std::string_view key, std::string range, std::string value) {
  fail(key, fmt::format("must be {}, got {}", range, value));
}

const json::Value* ObjectReader::find(std::string_view key) {
  known_.push_back(key);
  if (!ok() || members_ == nullptr) return nullptr;
  for (const auto& [member, value] : *members_) {
    if (member == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

bool ObjectReader::boolean(std::string_view key, bool fallback) {
  const json::Value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_bool()) return value->as_bool();
  fail_kind(key, *value, "true or false");
  return fallback;
}

std::optional<int64_t> ObjectReader::integer(std::string_view key, int64_t min, int64_t max) {
  const json::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> whole = whole_number(*value);
  if (!whole) {
    fail_kind(key, *value, "an integer");
  } else if (*whole < min || *whole > max) {
    const std::string range = max == INT64_MAX ? fmt::format("at least {}", min)
                                               : fmt::format("between {} and {}", min, max);
    fail_range(key, range, std::to_string(*whole));
  } else {
    return whole;
  }
  return std::nullopt;
}

std::optional<double> ObjectReader::number(std::string_view key, NumberRange range) {
  const json::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    fail_kind(key, *value, "a number");
    return std::nullopt;
  }
  const double x = value->as_number();
  const bool above = range.min_excluded ? x > range.min : x >= range.min;
  if (std::isfinite(x) && above && x <= range.max) return x;
  fail_range(key,
             fmt::format("in {}{}, {}]", range.min_excluded ? "(" : "[", shown(range.min),
                         shown(range.max)),
             shown(x));
  return std::nullopt;
}

std::optional<std::string> ObjectReader::string(std::string_view key, int64_t max_bytes) {
  const json::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    fail_kind(key, *value, "a string");
  } else if (static_cast<int64_t>(value->as_string().size()) > max_bytes) {
    fail_range(key, fmt::format("at most {} bytes long", max_bytes),
               std::to_string(value->as_string().size()));
  } else {
    return value->as_string();
  }
  return std::nullopt;
}

const json::Object* ObjectReader::object(std::string_view key) {
  const json::Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->as_object();
  fail_kind(key, *value, "an object");
  return nullptr;
}

const json::Array* ObjectReader::array(std::string_view key, int64_t max_items) {
  const json::Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    fail_kind(key, *value, "an array");
  } else if (static_cast<int64_t>(value->as_array().size()) > max_items) {
    fail_range(key, fmt::format("an array of at most {} items", max_items),
               std::to_string(value->as_array().size()));
  } else {
    return &value->as_array();
  }
  return nullptr;
}

std::vector<std::string> ObjectReader::strings(std::string_view key,
                                               int64_t max_items,
                                               int64_t max_bytes) {
  const json::Value* value = find(key);
  if (value == nullptr) return {};
  if (value->is_string()) {
    if (auto one = string(key, max_bytes)) return {*std::move(one)};
    return {};
  }
  if (!value->is_array()) {
    fail_kind(key, *value, "a string or an array of strings");
    return {};
  }
  std::vector<std::string> out;
  const json::Array* items = array(key, max_items);
  if (items == nullptr) return {};
  for (const json::Value& item : *items) {
    if (!item.is_string()) {
      fail_kind(key, item, "a string or an array of strings");
      return {};
    }
    if (static_cast<int64_t>(item.as_string().size()) > max_bytes) {
      fail_range(key, fmt::format("strings of at most {} bytes", max_bytes),
                 std::to_string(item.as_string().size()));
      return {};
    }
    out.push_back(item.as_string());
  }
  return out;
}

std::vector<int32_t> ObjectReader::ids(std::string_view key, int64_t max_items, int64_t limit) {
  const json::Value* value = find(key);
  if (value == nullptr) return {};
  const json::Array one = value->is_array() ? json::Array{} : json::Array{*value};
  const json::Array* items = value->is_array() ? array(key, max_items) : &one;
  if (items == nullptr) return {};
  std::vector<int32_t> out;
  out.reserve(items->size());
  for (const json::Value& item : *items) {
    const std::optional<int64_t> id = whole_number(item);
    if (!id) {
      fail_kind(key, item, "an array of token ids");
      return {};
    }
    if (*id < 0 || *id >= limit) {
      fail_range(key, fmt::format("token ids between 0 and {}", limit - 1), std::to_string(*id));
      return {};
    }
    out.push_back(static_cast<int32_t>(*id));
  }
  return out;
}

std::vector<std::vector<int32_t>> ObjectReader::id_lists(std::string_view key,
                                                         int64_t max_lists,
                                                         int64_t limit) {
  std::vector<std::vector<int32_t>> out;
  const json::Array* lists = array(key, max_lists);
  for (size_t i = 0; lists != nullptr && i < lists->size() && ok(); ++i) {
    const json::Value holder = json::Object{{"", (*lists)[i]}};
    ObjectReader inner(holder, fmt::format("{}[{}]", name(key), i));
    if (!(*lists)[i].is_array()) inner.fail_kind("", (*lists)[i], "an array of token ids");
    out.push_back(inner.ids("", INT64_MAX, limit));
    if (!inner.ok()) fail(inner.status());
  }
  return out;
}

void ObjectReader::refuse(std::string_view key, std::string_view why) {
  if (find(key) != nullptr) fail(key, why);
}

void ObjectReader::refuse_unknown() {
  if (!ok() || members_ == nullptr) return;
  for (const auto& [member, value] : *members_) {
    if (std::find(known_.begin(), known_.end(), member) == known_.end()) {
      fail(member, "is not a known field");
      return;
    }
  }
}

}  // namespace winnow::server
