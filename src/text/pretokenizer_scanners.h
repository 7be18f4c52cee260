// Alternatives that the known patterns share, over trusted UTF-8. Each returns the end of what it
// matches at p, or p where it does not match.
#pragma once

#include "text/unicode_classes.h"

namespace winnow::text::scan {

inline constexpr uint16_t kWordOrSpace = kSpace | kLetter | kNumber;

// (?i:'s|'t|'re|'ve|'m|'ll|'d)
const char* contraction(const char* p, const char* end);
// \s*[\r\n]+|\s+(?!\S)|\s+
const char* spaces(const ClassCursor& cursor, const char* p, const char* end);
// \p{N}{1,max}
const char* digits(const ClassCursor& cursor, const char* p, const char* end, int max);
//  ?[^\s\p{L}\p{N}]+[\r\n]*
const char* symbols(const ClassCursor& cursor, const char* p, const char* end);

}  // namespace winnow::text::scan
