// Kimi-K2's pattern, whose classes are intersected with "not Han":
//   [\p{Han}]+
//   [^\r\n\p{L}\p{N}]?[U]*[W]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   [^\r\n\p{L}\p{N}]?[U]+[W]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// U = \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M} and W = \p{Ll}\p{Lm}\p{Lo}\p{M}, both without Han.
#include "text/pretokenizer.h"
#include "text/pretokenizer_scanners.h"

namespace winnow::text {
namespace {

class KimiPreTokenizer final : public PreTokenizer {
 public:
  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const override {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* p = begin; p != end;) {
      p = next(p, end);
      ends.push_back(base + static_cast<size_t>(p - begin));
    }
  }

 private:
  static constexpr uint16_t kBoth = kUncased | kMark;
  static constexpr uint16_t kU = kUpper | kBoth;
  static constexpr uint16_t kW = kLower | kBoth;
  static bool in(uint16_t flags, uint16_t classes) { return flags & classes && !(flags & kHan); }

  const char* next(const char* p, const char* end) const {
    const auto c = cursor_.at(p);
    if (c.flags & kHan) return cursor_.skip(p, end, kHan);
    const bool prefix = !(c.flags & (kNewline | kLetter | kNumber));
    const char* const rest = p + c.size;
    // Each alternative tries the optional character first, then without it.
    if (prefix && rest != end) {
      if (const char* q = lower_word(rest, end); q != rest) return with_contraction(q, end);
    }
    if (const char* q = lower_word(p, end); q != p) return with_contraction(q, end);
    if (prefix && rest != end) {
      if (const char* q = upper_word(rest, end); q != rest) return with_contraction(q, end);
    }
    if (const char* q = upper_word(p, end); q != p) return with_contraction(q, end);
    if (c.flags & kNumber) return scan::digits(cursor_, p, end, 3);
    if (const char* q = scan::symbols(cursor_, p, end); q != p) return q;
    return scan::spaces(cursor_, p, end);
  }

  // [U]*[W]+ ; where no lower-case letter follows the U's, they give back up to the last character
  // that is in both.
  const char* lower_word(const char* p, const char* end) const {
    const char* after_both = p;
    const char* q = p;
    while (q != end) {
      const auto c = cursor_.at(q);
      if (!in(c.flags, kU)) break;
      q += c.size;
      if (c.flags & kBoth) after_both = q;
    }
    if (!in(cursor_.flags(q, end), kLower)) return after_both;
    return skip(q, end, kW);
  }

  // [U]+[W]*
  const char* upper_word(const char* p, const char* end) const {
    const char* q = skip(p, end, kU);
    return q == p ? p : skip(q, end, kW);
  }

  const char* skip(const char* p, const char* end, uint16_t classes) const {
    while (p != end) {
      const auto c = cursor_.at(p);
      if (!in(c.flags, classes)) break;
      p += c.size;
    }
    return p;
  }

  static const char* with_contraction(const char* p, const char* end) {
    return p == end ? p : scan::contraction(p, end);
  }

  ClassCursor cursor_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_kimi_pretokenizer() {
  return std::make_unique<KimiPreTokenizer>();
}

}  // namespace winnow::text
