// Typed reads of one JSON object's keys. A key with the value null counts as absent. Every failure
// is an Error that names the file and the key.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace winnow::model {

class ConfigKeys {
 public:
  // prefix: "" or "rope_parameters.", for messages. Both must outlive this.
  ConfigKeys(const json::Value& object, const std::string& path, std::string prefix = {})
      : object_(object), path_(path), prefix_(std::move(prefix)) {}

  // Null when absent.
  const json::Value* find(const char* key) const;
  bool has(const char* key) const { return find(key) != nullptr; }

  int32_t require_count(const char* key) const;               // 1 .. 2^24
  int32_t count_or(const char* key, int32_t fallback) const;  // 0 .. 2^24
  double require_positive(const char* key) const;
  double number_or(const char* key, double fallback) const;
  bool flag_or(const char* key, bool fallback) const;
  std::string text_or(const char* key, const std::string& fallback) const;
  std::optional<double> number(const char* key) const;
  // A list of strings of exactly size entries; nothing when absent.
  std::optional<std::vector<std::string>> words(const char* key, size_t size) const;

  [[noreturn]] void missing(const char* key) const;
  [[noreturn]] void refuse(const char* key, const std::string& what) const;

 private:
  int32_t to_count(const char* key, const json::Value& value, int64_t least) const;

  const json::Value& object_;
  const std::string& path_;
  std::string prefix_;
};

}  // namespace winnow::model
