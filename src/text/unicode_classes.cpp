#include "text/unicode_classes.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "text/unicode_class_runs.h"

namespace winnow::text {
namespace {

constexpr uint32_t kNumCodePoints = 0x110000;

uint16_t flags_of(std::string_view category) {
  switch (category[0]) {
    case 'l':
      if (category == "ll") return kLower;
      return category == "lu" || category == "lt" ? kUpper : kUncased;
    case 'm':
      return kMark | kWord;
    case 'n':
      return category == "nd" ? kNumber | kWord : kNumber;
    case 'p':
      return category == "pc" ? kPunctSymbol | kWord : kPunctSymbol;
    case 's':
      return kPunctSymbol;
    default:
      return 0;
  }
}

std::vector<uint16_t> expand() {
  std::vector<uint16_t> table;
  table.reserve(kNumCodePoints);
  for (size_t i = 0; i < kNumClassRuns; ++i) {
    const ClassRun& run = kClassRuns[i];
    uint16_t flags = flags_of(run.category());
    if (run.is_space()) flags |= kSpace;
    if (run.is_han()) flags |= kHan;
    if (run.is_alphabetic()) flags |= kWord;
    table.insert(table.end(), run.length, flags);
  }
  WINNOW_CHECK(table.size() == kNumCodePoints, "class runs cover {} code points", table.size());
  auto mark = [&](uint32_t first, uint32_t last, uint16_t flag) {
    std::for_each(table.begin() + first, table.begin() + last + 1,
                  [flag](uint16_t& flags) { flags |= flag; });
  };
  mark('\r', '\r', kNewline);
  mark('\n', '\n', kNewline);
  mark(0x200C, 0x200D, kWord);  // Join_Control
  mark(0x4E00, 0x9FA5, kCjkRange);
  mark(0x3040, 0x30FF, kCjkRange);
  mark('A', 'Z', kAsciiLetter);
  mark('a', 'z', kAsciiLetter);
  return table;
}

}  // namespace

const uint16_t* char_class_table() {
  static const std::vector<uint16_t> table = expand();
  return table.data();
}

}  // namespace winnow::text
