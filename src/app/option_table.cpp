#include "app/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"

namespace winnow::app {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

template <typename T>
T parse_number(std::string_view flag, const std::string& text, T min, T max) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = ec == std::errc() && end == text.data() + text.size();
  if (!whole || !(value >= min) || !(value <= max)) {
    throw_error("{} {}: expected a {}number between {} and {}", flag, text,
                std::is_integral_v<T> && ec == std::errc() && !whole ? "whole " : "", min, max);
  }
  return value;
}

// "141GB" is 141e9, "512MiB" 512 * 2^20, "7" seven.
std::optional<int64_t> parse_bytes(std::string_view text) {
  uint64_t count = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (ec != std::errc()) return std::nullopt;
  std::string unit;
  for (const char c : text.substr(static_cast<size_t>(end - text.data()))) {
    if (c != ' ') unit.push_back(static_cast<char>(c | 0x20));  // lower case
  }
  if (unit.ends_with('b')) unit.pop_back();
  const bool binary = unit.ends_with('i');
  if (binary) unit.pop_back();
  const std::string_view prefixes = "kmgtpe";
  const size_t power = unit.empty() ? 0 : prefixes.find(unit) + 1;
  if (unit.size() > 1 || (unit.empty() ? binary : power == 0)) return std::nullopt;
  const uint64_t limit = INT64_MAX;
  for (size_t i = 0; i < power; ++i) {
    const uint64_t base = binary ? 1024 : 1000;
    if (count > limit / base) return std::nullopt;
    count *= base;
  }
  return count <= limit ? std::optional(static_cast<int64_t>(count)) : std::nullopt;
}

void check_choice(std::string_view flag,
                  const std::string& text,
                  const std::vector<std::string>& choices,
                  const std::vector<std::string>& named) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  throw_error("{} {}: expected one of {}", flag, text, fmt::join(named, ", "));
}

std::string config_text(const std::string& where, const json::Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool() || value.is_number()) return json::dump(value);
  throw_error("{}: expected a string, a number, true or false, got {}", where, value.kind_name());
}

}  // namespace

OptionRow& OptionTable::add(std::string_view flags, std::string value, std::string help) {
  OptionRow& row = rows_.emplace_back();
  row.section = section_;
  row.flags = split(flags, ' ');
  row.typed = row.flags.front();
  row.value = std::move(value);
  row.help = std::move(help);
  return row;
}

void OptionTable::integer(
    std::string_view flags, int64_t& target, int64_t min, int64_t max, std::string help) {
  OptionRow& row = add(flags, "N", std::move(help));
  row.default_text = std::to_string(target);
  row.set = [&target, min, max](std::string_view flag, const std::string& text) {
    target = parse_number(flag, text, min, max);
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::number(
    std::string_view flags, double& target, double min, double max, std::string help) {
  OptionRow& row = add(flags, "X", std::move(help));
  row.default_text = fmt::format("{}", target);
  row.set = [&target, min, max](std::string_view flag, const std::string& text) {
    target = parse_number(flag, text, min, max);
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::text(std::string_view flags,
                       std::string& target,
                       std::string value,
                       std::string help) {
  const bool any = value == "TEXT";
  OptionRow& row = add(flags, std::move(value), std::move(help));
  row.default_text = target;
  row.set = [&target, any](std::string_view flag, const std::string& text) {
    // An unset variable of a shell script must not open the server to everyone.
    if (!any && text.empty()) throw_error("{}: must not be empty", flag);
    if (!any && !is_valid_utf8(text)) throw_error("{} {}: is not UTF-8", flag, text);
    target = text;
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::texts(std::string_view flags,
                        std::vector<std::string>& target,
                        std::string value,
                        std::string help) {
  OptionRow& row = add(flags, std::move(value), std::move(help));
  row.clear = [&target] { target.clear(); };
  row.set = [&target](std::string_view, const std::string& text) { target.push_back(text); };
  values_.push_back([&target] { return json::Value(json::Array(target.begin(), target.end())); });
}

void OptionTable::choice(std::string_view flags,
                         std::string& target,
                         std::vector<std::string> choices,
                         std::string help) {
  OptionRow& row = add(flags, "NAME", std::move(help));
  row.default_text = target;
  std::vector<std::string> named = choices;
  std::erase(named, "");
  row.help += fmt::format(" One of {}.", fmt::join(named, ", "));
  row.set = [&target, choices = std::move(choices), named = std::move(named)](
                std::string_view flag, const std::string& text) {
    check_choice(flag, text, choices, named);
    target = text;
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::toggle(std::string_view flags, bool& target, std::string help) {
  OptionRow& row = add(flags, "", std::move(help));
  row.set = [&target](std::string_view flag, const std::string& text) {
    if (text != "true" && text != "false") {
      throw_error("{} {}: expected true or false", flag, text);
    }
    target = text == "true";
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::bytes(std::string_view flags, int64_t& target, std::string help) {
  OptionRow& row = add(flags, "BYTES", std::move(help));
  row.default_text = std::to_string(target);
  row.set = [&target](std::string_view flag, const std::string& text) {
    const std::optional<int64_t> size = parse_bytes(text);
    if (!size) throw_error("{} {}: expected bytes, such as 141GB or 512MiB", flag, text);
    target = *size;
  };
  values_.push_back([&target] { return json::Value(target); });
}

void OptionTable::words(std::string_view flags,
                        std::vector<std::string>& target,
                        std::vector<std::string> choices,
                        std::string help) {
  OptionRow& row = add(flags, "NAME,...", std::move(help));
  row.default_text = fmt::format("{}", fmt::join(target, ","));
  row.help += fmt::format(" Of {}.", fmt::join(choices, ", "));
  row.set = [&target, choices = std::move(choices)](std::string_view flag,
                                                    const std::string& text) {
    std::vector<std::string> words = split(text, ',');
    if (words.empty()) throw_error("{}: expected names with commas between them", flag);
    for (const std::string& word : words) check_choice(flag, word, choices, choices);
    target = std::move(words);
  };
  values_.push_back([&target] { return json::Value(json::Array(target.begin(), target.end())); });
}

void OptionTable::integers(std::string_view flags,
                           std::vector<int64_t>& target,
                           int64_t min,
                           int64_t max,
                           std::string help) {
  OptionRow& row = add(flags, "N,...", std::move(help));
  row.default_text = fmt::format("{}", fmt::join(target, ","));
  row.set = [&target, min, max](std::string_view flag, const std::string& text) {
    std::vector<int64_t> numbers;
    for (const std::string& word : split(text, ',')) {
      numbers.push_back(parse_number(flag, word, min, max));
    }
    if (numbers.empty()) throw_error("{}: expected numbers with commas between them", flag);
    target = std::move(numbers);
  };
  values_.push_back([&target] { return json::Value(json::Array(target.begin(), target.end())); });
}

void OptionTable::positional(const std::string& name,
                             std::string& target,
                             std::string help,
                             Presence presence) {
  text(name, target, name, std::move(help));
  rows_.back().required = presence == Presence::kRequired;
}

void OptionTable::positionals(const std::string& name,
                              std::vector<std::string>& target,
                              std::string help) {
  texts(name, target, name, std::move(help));
}

OptionRow* OptionTable::find(std::string_view key) {
  std::string flag = "--";
  for (const char c : key) flag.push_back(c == '_' ? '-' : c);
  for (OptionRow& row : rows_) {
    if (std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end()) return &row;
  }
  return nullptr;
}

bool OptionTable::has(std::string_view flag) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const OptionRow& row) {
    return std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end();
  });
}

void OptionTable::apply_file(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error& error) {
    throw_error("--config {}", error.what());
  }
  const Result<json::Value> parsed = json::parse(text);
  if (!parsed.ok()) throw_error("--config {}: {}", path, parsed.status().message);
  if (!parsed.value().is_object()) throw_error("--config {}: must be an object", path);
  std::map<const OptionRow*, std::string> keys;
  for (const auto& [key, value] : parsed.value().as_object()) {
    OptionRow* row = find(key);
    if (row == nullptr) throw_error("--config {}: there is no option {}", path, key);
    if (row == find("config")) throw_error("--config {}: a file cannot name another", path);
    if (const auto [other, first] = keys.emplace(row, key); !first) {
      throw_error("--config {}: {} and {} are one option", path, other->second, key);
    }
    const std::string where = fmt::format("--config {}: {}", path, key);
    if (row->clear && value.is_array()) {
      for (const json::Value& v : value.as_array()) {
        row->set(where, config_text(where, v));
      }
    } else {
      row->set(where, config_text(where, value));
    }
  }
}

void OptionTable::apply() {
  const OptionRow* config = find("config");
  if (config != nullptr && !config->given.empty()) apply_file(config->given.back());
  for (const OptionRow& row : rows_) {
    if (row.clear && !row.given.empty()) row.clear();
    for (const std::string& text : row.given) row.set(row.typed, text);
  }
}

json::Object OptionTable::as_json() const {
  json::Object out;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].positional()) continue;
    std::string key = rows_[i].flags.front().substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    out.emplace_back(std::move(key), values_[i]());
  }
  return out;
}

std::string OptionTable::markdown(
    const std::function<std::string(const std::string& flag)>& also) const {
  std::string out;
  std::string_view section;
  for (const OptionRow& row : rows_) {
    if (row.positional()) continue;
    if (row.section != section) {
      section = row.section;
      out += fmt::format("\n## {}\n\n| option | default | meaning | also of |\n|---|---|---|---|\n",
                         section);
    }
    std::string names = fmt::format("`{}`", fmt::join(row.flags, "`, `"));
    if (!row.value.empty()) names += " " + row.value;
    std::string help = row.help;
    for (size_t at = 0; (at = help.find('|', at)) != std::string::npos; at += 2) {
      help.insert(at, 1, '\\');
    }
    out += fmt::format("| {} | {} | {} | {} |\n", names, row.default_text, help,
                       also(row.flags.front()));
  }
  return out;
}

}  // namespace winnow::app
