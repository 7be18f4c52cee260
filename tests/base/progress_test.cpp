#include "base/progress.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

std::string output_of(Progress::Style style) {
  std::FILE* stream = std::tmpfile();
  Progress progress(style, stream);
  progress.start("Loading weights", 2'000'000);
  progress.advance(500'000);
  progress.advance(1'500'000);
  progress.finish();
  std::string text(static_cast<size_t>(std::ftell(stream)), '\0');
  std::rewind(stream);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), stream), text.size());
  std::fclose(stream);
  return text;
}

TEST(Progress, OneLineWhereThereIsNoTerminal) {
  EXPECT_EQ(output_of(Progress::Style::kAuto).rfind("Loading weights: 2.0 MB in ", 0), 0u);
  EXPECT_EQ(output_of(Progress::Style::kPlain).find('\r'), std::string::npos);
  EXPECT_EQ(output_of(Progress::Style::kSilent), "");
}

TEST(Progress, BarEndsFull) {
  const std::string text = output_of(Progress::Style::kBar);
  EXPECT_NE(text.find("[                              ]   0 %  0 B of 2.0 MB"), std::string::npos)
      << text;
  EXPECT_NE(text.find("[==============================] 100 %  2.0 MB of 2.0 MB"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(Progress, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(999'949), "999.9 kB");
  EXPECT_EQ(format_bytes(999'960), "1.0 MB");
  EXPECT_EQ(format_bytes(755'600'000'000), "755.6 GB");
  EXPECT_EQ(format_bytes(int64_t{5'000'000'000'000'000}), "5000.0 TB");
}

}  // namespace
}  // namespace winnow
