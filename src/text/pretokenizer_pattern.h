// Oniguruma's pattern syntax (Hugging Face `tokenizers`) to PCRE2's.
#pragma once

#include <string>
#include <string_view>

namespace winnow::text {

// Rewrites what means something else in PCRE2, or depends on the Unicode version of the one that is
// installed: general categories, \s, \d, \w and \b become the code points of our tables, a script
// is told from its extensions, \uHHHH is spelt anew. Throws Error, beginning with `where`, on what
// cannot be rewritten and would silently cut differently: class intersections and nested classes,
// {n,m}+ (not possessive in Oniguruma), \h, \p without braces, most POSIX brackets, options other
// than i. Scripts but Han are those of PCRE2's tables.
std::string translate_pattern(std::string_view pattern, const std::string& where);

}  // namespace winnow::text
