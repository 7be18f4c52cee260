#include "base/table.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(Table, AlignsColumns) {
  Table table({"name", ">bytes", "note"});
  table.add_row({"weights", "7", "first"});
  table.add_row({"größe", "1,234", ""});
  EXPECT_EQ(table.to_text(),
            "name     bytes  note\n"
            "weights      7  first\n"
            "größe    1,234\n");
  EXPECT_EQ(Table({"a", ">b"}).to_text(2), "  a  b\n");
}

TEST(Table, Thousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(118629), "118,629");
  EXPECT_EQ(with_thousands(-123456), "-123,456");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace winnow
