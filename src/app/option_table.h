// A table of command-line options: one row gives the flag, its other spellings, the config-file
// key, the help, the check and the line in docs/options.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace winnow::app {

struct OptionRow {
  std::string section;
  std::vector<std::string> flags;  // "--port"; the first is the name, also without "--" the
                                   // config-file key. A positional has one name without dashes
  std::string value;               // "N", "NAME", ...; empty: a switch
  std::string help;
  std::string default_text;  // for help and docs
  // Checks and stores; throws Error. A switch gets "true" or "false".
  std::function<void(std::string_view flag, const std::string& text)> set;
  std::function<void()> clear;     // of an option that may be repeated: forgets all values
  std::vector<std::string> given;  // on the command line
  std::string typed;               // the flag there, spelled out; the first of flags where none is
  bool required = false;

  bool positional() const { return !flags.front().starts_with("--"); }
};

enum class Presence { kOptional, kRequired };

class OptionTable {
 public:
  // Starts a group of rows.
  void section(std::string title) { section_ = std::move(title); }

  // flags: "--tp-size --tp"; the target's present value is the default.
  void integer(std::string_view flags, int64_t& target, int64_t min, int64_t max, std::string help);
  void number(std::string_view flags, double& target, double min, double max, std::string help);
  // value: what the help calls it. A "TEXT" may be empty and of any bytes, everything else not.
  void text(std::string_view flags, std::string& target, std::string value, std::string help);
  void choice(std::string_view flags,
              std::string& target,
              std::vector<std::string> choices,
              std::string help);
  void toggle(std::string_view flags, bool& target, std::string help);
  // May be given several times; in a config file one string or a list of them.
  void texts(std::string_view flags,
             std::vector<std::string>& target,
             std::string value,
             std::string help);
  // "141GB", "512MiB" or plain bytes.
  void bytes(std::string_view flags, int64_t& target, std::string help);
  // Values with commas between them.
  void words(std::string_view flags,
             std::vector<std::string>& target,
             std::vector<std::string> choices,
             std::string help);
  void integers(std::string_view flags,
                std::vector<int64_t>& target,
                int64_t min,
                int64_t max,
                std::string help);

  // A word without a flag, or all such words that are left. On the command line only.
  void positional(const std::string& name,
                  std::string& target,
                  std::string help,
                  Presence presence = Presence::kOptional);
  void positionals(const std::string& name, std::vector<std::string>& target, std::string help);

  // The values of the file that --config names ({"port": 30000, "kv-cache-dtype": "auto"};
  // underscores will do), then the command line's, which win. Throws Error.
  void apply();

  // What the command line gives goes into the rows, and is stored by apply().
  std::vector<OptionRow>& rows() { return rows_; }
  const std::vector<OptionRow>& rows() const { return rows_; }
  // Every option's value: what /server_info shows, keys with underscores.
  json::Object as_json() const;
  // docs/options.md, from the rows. also: what the last column says of a flag.
  std::string markdown(const std::function<std::string(const std::string& flag)>& also) const;
  bool has(std::string_view flag) const;

 private:
  OptionRow& add(std::string_view flags, std::string value, std::string help);
  OptionRow* find(std::string_view key);
  void apply_file(const std::string& path);

  std::string section_;
  std::vector<OptionRow> rows_;
  std::vector<std::function<json::Value()>> values_;  // by row
};

}  // namespace winnow::app
