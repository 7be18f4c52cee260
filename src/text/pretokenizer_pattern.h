// Oniguruma's pattern syntax (Hugging Face `tokenizers`) to PCRE2's.
#pragma once

#include <string>
#include <string_view>

namespace winnow::text {

// Rewrites what means something else in PCRE2: \s and \S (U+180E is no space), scripts (not their
// extensions) and \uHHHH. Throws
// Error, beginning with `where`, on what cannot be rewritten and would silently cut differently:
// class intersections and nested classes, {n,m}+ (not possessive in Oniguruma), \h, options other
// than i.
std::string translate_pattern(std::string_view pattern, const std::string& where);

}  // namespace winnow::text
