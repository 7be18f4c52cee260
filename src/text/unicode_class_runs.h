// The generated table behind unicode_classes.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace winnow::text {

// General categories by their short names, in the generator's order.
inline constexpr std::string_view kCategories[] = {
    "cn", "cc", "cf", "co", "cs", "ll", "lm", "lo", "lt", "lu", "mc", "me", "mn", "nd", "nl",
    "no", "pc", "pd", "pe", "pf", "pi", "po", "ps", "sc", "sk", "sm", "so", "zl", "zp", "zs"};

// The next `length` code points, counted from U+0000, have these properties.
struct ClassRun {
  uint32_t length;
  uint16_t flags;

  constexpr std::string_view category() const { return kCategories[flags & 31]; }
  constexpr bool is_space() const { return flags & 32; }  // White_Space
  constexpr bool is_han() const { return flags & 64; }    // script Han
  constexpr bool is_alphabetic() const { return flags & 128; }
};
extern const ClassRun kClassRuns[];
extern const size_t kNumClassRuns;

}  // namespace winnow::text
