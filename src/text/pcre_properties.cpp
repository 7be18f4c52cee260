#include "text/pcre_properties.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "text/unicode_utf8.h"

namespace winnow::text {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

// How PCRE2 would write it inside a class; empty where it has no name for it, or where a few
// numbers are shorter.
std::string pcre_spelling(std::string_view name, size_t num_ranges) {
  constexpr size_t kFew = 16;
  if (num_ranges <= kFew) return "";
  if (name == "word") return "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
  if (name == "han") return "\\p{sc:Han}";
  if (name == "lc") return "\\p{L&}";
  if (name == "alphabetic") return "\\p{Alphabetic}";
  return fmt::format("\\p{{{}}}", name);
}

// What `members` holds of the text; nothing where this PCRE2 does not know the name.
std::optional<CodePointRanges> members_by_pcre(const std::string& members, std::string_view text) {
  const std::string pattern = "[" + members + "]+";
  int error = 0;
  size_t offset = 0;
  const std::unique_ptr<pcre2_code, FreeCode> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  if (!code) return std::nullopt;
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it the same answer comes later
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  WINNOW_CHECK(match, "PCRE2 is out of memory");
  CodePointRanges ranges;
  const size_t* const found = pcre2_get_ovector_pointer(match.get());
  for (size_t at = 0; pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, PCRE2_NO_UTF_CHECK, match.get(), nullptr) > 0;
       at = found[1]) {
    for (size_t i = found[0]; i < found[1];) {
      const CodePoint c = decode_trusted(text.data() + i);
      append_code_point(ranges, c.value);
      i += c.size;
    }
  }
  return ranges;
}

}  // namespace

std::string class_of(const CodePointRanges& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    text += fmt::format("\\x{{{:x}}}", first);
    if (last != first) text += fmt::format("-\\x{{{:x}}}", last);
  }
  return text;
}

const std::string& PcreProperties::class_of_property(std::string_view name) {
  const std::string key = canonical_property(name);
  const auto at = known_.find(key);
  if (at != known_.end()) return at->second;
  const CodePointRanges ours = *property_ranges(name);
  std::string text = class_of(ours);
  if (const std::string spelling = pcre_spelling(key, ours.size()); !spelling.empty()) {
    if (every_code_point_.empty()) {
      const CodePointRanges all = *property_ranges("Any");
      for (const auto& [first, last] : all) {
        for (uint32_t c = first; c <= last; ++c) append_utf8(every_code_point_, c);
      }
    }
    const auto theirs = members_by_pcre(spelling, every_code_point_);
    if (theirs && difference(*theirs, ours).empty()) {
      text = spelling + class_of(difference(ours, *theirs));
    }
  }
  return known_.emplace(key, std::move(text)).first->second;
}

}  // namespace winnow::text
