#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "testing/errors.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

TEST(MappedFile, ReadsAndMoves) {
  testing::TempFolder folder;
  MappedFile file(folder.write("a", "hello"));
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_EQ(moved.bytes(), 5);
  moved.read_ahead(moved.data() + 1, 3);
  EXPECT_EQ(MappedFile(folder.write("empty", "")).text(), "");
  EXPECT_EQ(read_file(folder.write("zero", std::string(3, '\0'))), std::string(3, '\0'));
}

// A pipe of that name: opening it would wait for ever.
TEST(MappedFile, TakesRegularFilesOnly) {
  testing::TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.file("pipe"), std::string("/dev/zero")}) {
    testing::expect_says(testing::error_of([&] { MappedFile file(path); }),
                         {path.c_str(), "no regular file"});
  }
  testing::expect_says(testing::error_of([&] { MappedFile file(folder.path()); }),
                       {folder.path().c_str(), "is a directory"});
}

// A file cut short while it is mapped (fault B76, after the checks): an Error, not a signal.
TEST(MappedFile, ReadAheadBeyondTheEndIsAnError) {
  testing::TempFolder folder;
  const std::string path = folder.write("a", std::string(100'000, 'x'));
  const MappedFile file(path);
  file.read_ahead(file.data(), file.bytes());
  std::filesystem::resize_file(path, 10'000);
  testing::expect_says(testing::error_of([&] { file.read_ahead(file.data(), file.bytes()); }),
                       {path.c_str(), "cannot be read"});
}

}  // namespace
}  // namespace winnow
