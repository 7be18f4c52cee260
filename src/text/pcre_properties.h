// Unicode properties in PCRE2's spelling, exact whatever Unicode version its tables are of.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "text/unicode_properties.h"

namespace winnow::text {

// "\x{41}-\x{5a}...": the inside of a class that holds these.
std::string class_of(const CodePointRanges& ranges);

// Writes a property as the inside of a class. PCRE2's own name of it stands for most members, since
// a compiled pattern has room for 64 KiB only; what it lacks follows by number.
class PcreProperties {
 public:
  // name: one that property_ranges knows.
  const std::string& class_of_property(std::string_view name);

 private:
  std::string every_code_point_;  // UTF-8, made when first needed
  std::map<std::string, std::string, std::less<>> known_;
};

}  // namespace winnow::text
