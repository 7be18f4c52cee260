#include "model/config_keys.h"

#include <limits>

namespace winnow::model {

namespace {

// No dimension of a real model comes near it, and products of three still fit in 64 bits times a
// layer count: damaged files cannot overflow the arithmetic.
constexpr int64_t kMaxCount = int64_t{1} << 24;

}  // namespace

const json::Value* ConfigKeys::find(const char* key) const {
  const json::Value* value = object_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

int32_t ConfigKeys::to_count(const char* key, const json::Value& value, int64_t least) const {
  if (!value.is_integer())
    refuse(key, fmt::format("must be an integer, not {}", value.kind_name()));
  const int64_t count = value.as_integer();
  if (count < least || count > kMaxCount) {
    refuse(key, fmt::format("is {}, outside {} to {}", count, least, kMaxCount));
  }
  return static_cast<int32_t>(count);
}

int32_t ConfigKeys::require_count(const char* key) const {
  const json::Value* value = find(key);
  if (value == nullptr) missing(key);
  return to_count(key, *value, 1);
}

int32_t ConfigKeys::count_or(const char* key, int32_t fallback) const {
  const json::Value* value = find(key);
  return value == nullptr ? fallback : to_count(key, *value, 0);
}

std::optional<double> ConfigKeys::number(const char* key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, fmt::format("must be a number, not {}", value->kind_name()));
  return value->as_number();
}

double ConfigKeys::number_or(const char* key, double fallback) const {
  return number(key).value_or(fallback);
}

double ConfigKeys::require_positive(const char* key) const {
  const std::optional<double> value = number(key);
  if (!value) missing(key);
  // The arithmetic is fp32: beyond its range a value becomes 0 or infinite.
  constexpr double kLeast = std::numeric_limits<float>::min();
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!(*value >= kLeast && *value <= kMost)) {
    refuse(key, fmt::format("is {}, not above 0 within fp32", *value));
  }
  return *value;
}

bool ConfigKeys::flag_or(const char* key, bool fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool())
    refuse(key, fmt::format("must be true or false, not {}", value->kind_name()));
  return value->as_bool();
}

std::string ConfigKeys::text_or(const char* key, const std::string& fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse(key, fmt::format("must be a string, not {}", value->kind_name()));
  return value->as_string();
}

std::optional<std::vector<std::string>> ConfigKeys::words(const char* key, size_t size) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) refuse(key, fmt::format("must be a list, not {}", value->kind_name()));
  if (value->as_array().size() != size) {
    refuse(key, fmt::format("has {} entries for {} layers", value->as_array().size(), size));
  }
  std::vector<std::string> words;
  for (const json::Value& word : value->as_array()) {
    if (!word.is_string()) refuse(key, "must hold strings");
    words.push_back(word.as_string());
  }
  return words;
}

void ConfigKeys::missing(const char* key) const {
  throw_error("{}: required key {}{} is missing", path_, prefix_, key);
}

void ConfigKeys::refuse(const char* key, const std::string& what) const {
  throw_error("{}: {}{} {}", path_, prefix_, key, what);
}

}  // namespace winnow::model
