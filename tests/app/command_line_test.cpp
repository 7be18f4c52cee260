// The command line as a user types it: what it takes, and what it says to what it does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/program.h"

namespace winnow {
namespace {

testing::ProgramResult winnow(const std::string& arguments) {
  return testing::run_program(std::string(WINNOW_PROGRAM) + " " + arguments);
}

// One line on stderr, the words in it, exit code 1.
void expect_refusal(const std::string& arguments, const std::string& words) {
  const testing::ProgramResult result = winnow(arguments);
  EXPECT_EQ(result.exit_code, 1) << arguments;
  EXPECT_NE(result.output.find(words), std::string::npos) << arguments << ": " << result.output;
}

TEST(CommandLine, AFlagTakesOneValueAndLeavesTheNextWordAlone) {
  const std::string model = WINNOW_SOURCE_DIR "/models/winnow-mini";
  for (const char* flags : {"--memory 141GB {}", "{} --memory 141GB", "--memory=141GB {}",
                            "--memory 1GB --memory 141GB -- {}", "--model {} --memo 141GB"}) {
    const auto result = winnow("inspect " + fmt::format(fmt::runtime(flags), model));
    EXPECT_EQ(result.exit_code, 0) << flags << ": " << result.output;
    EXPECT_NE(result.output.find("141"), std::string::npos) << flags << ": " << result.output;
  }
}

TEST(CommandLine, Sizes) {
  for (const char* size :
       {"7XB", "GB", "1.5GB", "-1", "8i", "99999999999999999999", "16EB", "1GBB", "''"}) {
    expect_refusal(fmt::format("inspect --memory {} nowhere", size), "--memory");
  }
  for (const char* size : {"7", "7b", "7 kB", "7k", "512MiB", "512mi", "8EB", "7EiB"}) {
    expect_refusal(fmt::format("inspect --memory '{}' nowhere", size), "nowhere: no such folder");
  }
}

TEST(CommandLine, UnknownWords) {
  expect_refusal("", "subcommand is required");
  expect_refusal("bench", "subcommand is required");
  expect_refusal("sevre --port 1", "there is no winnow sevre; one of serve, generate");
  expect_refusal("bench severing", "there is no bench severing; one of offline");
  expect_refusal("serve --prot 1", "did you mean --port");
  expect_refusal("serve --model-p x --d 1", "--d could be any of --device");
  expect_refusal("eval compare one.jsonl", "B is required");
  expect_refusal("generate --prompt two words", "words");
  expect_refusal("serve --port", "--port");
  expect_refusal("serve --trust-remote-code=maybe nowhere", "--trust-remote-code");
}

TEST(CommandLine, HelpAndAnythingBehindTheDashes) {
  const auto help = winnow("bench serving --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("--request-rate X=inf"), std::string::npos) << help.output;
  expect_refusal("inspect -- --memory", "--memory: no such folder");
}

}  // namespace
}  // namespace winnow
