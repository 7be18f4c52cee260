// The generated table behind unicode_classes.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace winnow::text {

// The next `length` code points, counted from U+0000, have these flags.
struct ClassRun {
  uint32_t length;
  uint16_t flags;
};
extern const ClassRun kClassRuns[];
extern const size_t kNumClassRuns;

}  // namespace winnow::text
