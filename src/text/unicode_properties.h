// Properties that patterns name, as ranges of code points at the Unicode version of our own tables:
// that of a regex library differs from one system to the next, and so would the pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::text {

struct CodePointRange {
  uint32_t first;
  uint32_t last;  // inclusive
};
// Ascending, disjoint, without surrogates.
using CodePointRanges = std::vector<CodePointRange>;

// The members of a general category ("Lu", "Uppercase_Letter"), of a group of them ("L", "LC",
// "Letter") or of Alphabetic, White_Space, Han, Word, Any. Case, spaces, '_' and '-' of the name do
// not matter. Nothing for other names: scripts but Han, blocks, binary properties.
std::optional<CodePointRanges> property_ranges(std::string_view name);

// The one spelling of such a name: lower case, short where there is a short one.
std::string canonical_property(std::string_view name);

// Adds a code point behind the last one, to its range where it follows it.
void append_code_point(CodePointRanges& ranges, uint32_t code_point);

// What `all` holds and `without` does not.
CodePointRanges difference(const CodePointRanges& all, const CodePointRanges& without);

}  // namespace winnow::text
