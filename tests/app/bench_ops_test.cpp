// winnow bench ops hands its options to the kernels' bench program beside it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/program.h"
#include "testing/temp_folder.h"

namespace winnow {
namespace {

class BenchOps : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy_file(WINNOW_PROGRAM, program_); }
  testing::ProgramResult run(const std::string& arguments) {
    return testing::run_program(program_.string() + " bench ops " + arguments);
  }

  testing::TempFolder folder_;
  std::filesystem::path program_ = std::filesystem::path(folder_.path()) / "winnow";
};

TEST_F(BenchOps, SaysWhatToBuildWhereTheProgramIsMissing) {
  const auto result = run("");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("--target winnow_gpu_check"), std::string::npos) << result.output;
}

TEST_F(BenchOps, RunsTheProgramWithItsOptions) {
  const auto check = std::filesystem::path(folder_.path()) / "winnow_gpu_check";
  std::ofstream(check) << "#!/bin/sh\necho \"got $*\"\nexit 3\n";
  std::filesystem::permissions(check, std::filesystem::perms::owner_all);
  const auto result =
      run("topk --json rates.jsonl --only 'rows 16' --only _h64 --rivals rivals.py");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(
      result.output,
      "got --bench-only --only rows 16 --only _h64 --json rates.jsonl --rivals rivals.py topk\n");
}

}  // namespace
}  // namespace winnow
