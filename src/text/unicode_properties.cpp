#include "text/unicode_properties.h"

#include <algorithm>
#include <string>

#include "text/unicode_class_runs.h"

namespace winnow::text {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;
constexpr uint32_t kLastCodePoint = 0x10FFFF;

struct Alias {
  std::string_view name;
  std::string_view stands_for;
};
constexpr Alias kAliases[] = {
    {"other", "c"},
    {"unassigned", "cn"},
    {"control", "cc"},
    {"cntrl", "cc"},
    {"format", "cf"},
    {"privateuse", "co"},
    {"surrogate", "cs"},
    {"letter", "l"},
    {"lowercaseletter", "ll"},
    {"modifierletter", "lm"},
    {"otherletter", "lo"},
    {"titlecaseletter", "lt"},
    {"uppercaseletter", "lu"},
    {"casedletter", "lc"},
    {"mark", "m"},
    {"combiningmark", "m"},
    {"spacingmark", "mc"},
    {"enclosingmark", "me"},
    {"nonspacingmark", "mn"},
    {"number", "n"},
    {"decimalnumber", "nd"},
    {"digit", "nd"},
    {"letternumber", "nl"},
    {"othernumber", "no"},
    {"punctuation", "p"},
    {"connectorpunctuation", "pc"},
    {"dashpunctuation", "pd"},
    {"closepunctuation", "pe"},
    {"finalpunctuation", "pf"},
    {"initialpunctuation", "pi"},
    {"otherpunctuation", "po"},
    {"openpunctuation", "ps"},
    {"symbol", "s"},
    {"currencysymbol", "sc"},
    {"modifiersymbol", "sk"},
    {"mathsymbol", "sm"},
    {"othersymbol", "so"},
    {"separator", "z"},
    {"lineseparator", "zl"},
    {"paragraphseparator", "zp"},
    {"spaceseparator", "zs"},
    {"alpha", "alphabetic"},
    {"space", "whitespace"},
};

void append(CodePointRanges& ranges, uint32_t first, uint32_t last) {
  if (!ranges.empty() && ranges.back().last + 1 == first) {
    ranges.back().last = last;
  } else {
    ranges.push_back({first, last});
  }
}

template <typename Holds>
CodePointRanges ranges_where(Holds holds) {
  CodePointRanges ranges;
  uint32_t first = 0;
  for (size_t i = 0; i < kNumClassRuns; ++i) {
    const ClassRun& run = kClassRuns[i];
    if (run.category() != "cs" && holds(run)) append(ranges, first, first + run.length - 1);
    first += run.length;
  }
  return ranges;
}

// \w of Oniguruma, but for kWordsOfLatin1.
bool is_word(const ClassRun& run) {
  const std::string_view name = run.category();
  return run.is_alphabetic() || name[0] == 'm' || name == "nd" || name == "pc";
}

// Superscripts and fractions, which Oniguruma's \w holds for want of a look at their category.
constexpr CodePointRange kWordsOfLatin1[] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};

CodePointRanges word_ranges() {
  CodePointRanges ranges = ranges_where(is_word);
  ranges.insert(ranges.end(), std::begin(kWordsOfLatin1), std::end(kWordsOfLatin1));
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  CodePointRanges merged;
  for (const CodePointRange& range : ranges) append(merged, range.first, range.last);
  return merged;
}

}  // namespace

std::string canonical_property(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto* alias = std::find_if(std::begin(kAliases), std::end(kAliases),
                                   [&](const Alias& a) { return a.name == out; });
  return alias == std::end(kAliases) ? out : std::string(alias->stands_for);
}

std::optional<CodePointRanges> property_ranges(std::string_view name) {
  const std::string wanted = canonical_property(name);
  if (wanted == "any") {
    return CodePointRanges{{0, kFirstSurrogate - 1}, {kLastSurrogate + 1, kLastCodePoint}};
  }
  if (wanted == "word") return word_ranges();
  if (wanted == "whitespace") return ranges_where([](const ClassRun& r) { return r.is_space(); });
  if (wanted == "han") return ranges_where([](const ClassRun& r) { return r.is_han(); });
  if (wanted == "alphabetic") {
    return ranges_where([](const ClassRun& r) { return r.is_alphabetic(); });
  }
  if (wanted == "lc") {
    return ranges_where([](const ClassRun& r) {
      const std::string_view n = r.category();
      return n == "ll" || n == "lt" || n == "lu";
    });
  }
  // A group's name is how those of its members begin.
  const bool known =
      !wanted.empty() && std::any_of(std::begin(kCategories), std::end(kCategories),
                                     [&](std::string_view n) { return n.starts_with(wanted); });
  if (!known) return std::nullopt;
  return ranges_where([&](const ClassRun& r) { return r.category().starts_with(wanted); });
}

void append_code_point(CodePointRanges& ranges, uint32_t code_point) {
  append(ranges, code_point, code_point);
}

CodePointRanges difference(const CodePointRanges& all, const CodePointRanges& without) {
  CodePointRanges out;
  auto cut = without.begin();
  for (auto [first, last] : all) {
    while (cut != without.end() && cut->last < first) ++cut;
    for (auto c = cut; c != without.end() && c->first <= last && first <= last; ++c) {
      if (c->first > first) out.push_back({first, c->first - 1});
      first = c->last + 1;
    }
    if (first <= last) out.push_back({first, last});
  }
  return out;
}

}  // namespace winnow::text
