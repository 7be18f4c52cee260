// The command line as a user types it: what it takes, and what it says to what it does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/paths.h"
#include "testing/program.h"
#include "testing/temp_folder.h"

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
  expect_refusal("serve --port", "--port: a value (N) must follow");
  expect_refusal("eval gsm8k --parallel --json", "--parallel: a value (N) must follow");
  expect_refusal("serve --trust-remote-code=maybe nowhere", "--trust-remote-code");
}

// An option of several names is spoken of by the one that was used.
TEST(CommandLine, TheNameThatWasTyped) {
  expect_refusal("eval gsm8k --num-questions -1", "winnow: --num-questions -1: expected");
  expect_refusal("eval gsm8k --num-q=-1", "winnow: --num-questions -1: expected");
  expect_refusal("eval gsm8k --num-questions 1 --num-examples -1", "winnow: --num-examples -1");
  const testing::TempFolder folder;
  expect_refusal("eval gsm8k --config " + folder.write("c.json", R"({"num_questions":-1})"),
                 "c.json: num_questions -1: expected");
}

// What would otherwise be passed over in silence, or be found out after the model is read.
TEST(CommandLine, ValuesThatContradict) {
  expect_refusal("serve one --model-path two", "the model is given twice: two and one");
  expect_refusal("inspect one --model two", "the model is given twice");
  expect_refusal("serve one --chunked-prefill-size 0", "-1 for whole prompts");
  expect_refusal("serve one --context-length 1", "no room for an answer");
  expect_refusal("serve one --precision reference --kv-cache-dtype fp8_e4m3", "caches in fp32");
  expect_refusal(
      "score --precision reference --index-key-dtype bfloat16 --model one --input i "
      "--output o",
      "caches in fp32");
  expect_refusal("serve one --threads 1.5", "expected a whole number between 0 and 1024");
  const std::string generate = "generate --model one --prompt x ";
  expect_refusal(generate + "--temperature -0.5", "--temperature -0.5");
  expect_refusal(generate + "--top-p 0", "--top-p 0");
  expect_refusal(generate + "--system y", "belong to --chat");
  expect_refusal(generate + "--no-thinking", "belong to --chat");
  expect_refusal(generate + "--stop ''", "--stop");
  const std::string mini = WINNOW_SOURCE_DIR "/models/winnow-mini";
  expect_refusal("generate --prompt x --max-total-tokens 64 --model " + mini,
                 "more than a page of 64 tokens");
}

// The server used to abort on the first text with an id beyond the embedding.
TEST(CommandLine, ATokenizerBeyondTheVocabulary) {
  const std::string folders = " --model-path " + testing::data_path("tiny_glm52") +
                              " --tokenizer-path " WINNOW_SOURCE_DIR "/models/winnow-mini";
  for (const char* command : {"serve --port 0", "generate --prompt x"}) {
    expect_refusal(command + folders, "the tokenizer has ids up to 2047, but vocab_size of");
  }
}

TEST(CommandLine, ConfigFilesThatCannotWork) {
  const testing::TempFolder folder;
  const auto refused = [&](const std::string& text, const std::string& words) {
    expect_refusal("serve one --config " + folder.write("c.json", text), words);
  };
  refused(R"({"config":"other.json"})", "a file cannot name another");
  refused(R"({"model":"a","model-path":"b"})", "model and model-path are one option");
  refused(R"({"port":1,"port":2})", "port is a duplicate key");
  refused(R"({"port":18446744073709551615})", "beyond 64 signed bits");
  refused("\xEF\xBB\xBF{\"tp\":2}", "tp 2");  // a byte order mark does no harm
  expect_refusal("serve one --config " + folder.path(), "directory");
}

// A full disk behind a pipe is not success.
TEST(CommandLine, OutputThatCannotBeWritten) {
  const std::string mini = WINNOW_SOURCE_DIR "/models/winnow-mini";
  for (const std::string& command : {"inspect " + mini, "inspect --json " + mini,
                                     "generate --prompt x --max-new-tokens 1 --model " + mini}) {
    const auto result =
        testing::run_program(fmt::format("({} {} >/dev/full)", WINNOW_PROGRAM, command));
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_NE(result.output.find("standard output"), std::string::npos) << result.output;
  }
}

// Not after a million tokens that nobody gets.
TEST(CommandLine, GenerateStopsAtTheFirstByteThatIsNotTaken) {
  const std::string endless = WINNOW_PROGRAM
      " generate --prompt x --ignore-eos --max-new-tokens 4000 --log-level info "
      "--model " WINNOW_SOURCE_DIR "/models/winnow-mini";
  const auto full = testing::run_program(fmt::format("({} >/dev/full)", endless));
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.output.find("standard output cannot be written: No space"), std::string::npos)
      << full.output;
  EXPECT_EQ(full.output.find("prompt tokens"), std::string::npos)
      << full.output;  // what it ends with
  const auto closed = testing::run_program(fmt::format("({} >&-)", endless));
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_NE(closed.output.find("standard output"), std::string::npos) << closed.output;
  // A reader that leaves, with the signal for it and without.
  for (const char* first : {"", "trap '' PIPE; "}) {
    const auto left = testing::run_program(fmt::format("{}{} | head -c 1", first, endless));
    EXPECT_EQ(left.exit_code, 0);
    EXPECT_EQ(left.output.find("winnow:"), std::string::npos) << left.output;
    EXPECT_EQ(left.output.find("prompt tokens"), std::string::npos) << left.output;
  }
}

// A value that a script left out, and bytes that no JSON can hold.
TEST(CommandLine, EmptyAndBrokenNames) {
  for (const char* flag : {"--host", "--api-key", "--admin-api-key", "--served-model-name",
                           "--tokenizer-path", "--trace", "--model-path"}) {
    expect_refusal(fmt::format("serve {} ''", flag), fmt::format("{}: must not be empty", flag));
  }
  expect_refusal("serve ''", "must not be empty");
  expect_refusal("score --dump ''", "--dump: expected names");
  expect_refusal("serve nowhere --served-model-name \"$(printf '\\377')\"", "is not UTF-8");
  EXPECT_EQ(winnow("-h").output, winnow("--help").output);
  EXPECT_EQ(winnow("bench -h").exit_code, 0);
}

TEST(CommandLine, LinksThatLeadToThemselves) {
  testing::TempFolder folder;
  for (const auto& entry :
       std::filesystem::directory_iterator(WINNOW_SOURCE_DIR "/models/winnow-mini")) {
    const std::string name = entry.path().filename();
    std::filesystem::create_symlink(name == "generation_config.json" ? name : entry.path().string(),
                                    folder.file(name));
  }
  const auto result = winnow("inspect " + folder.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find(folder.file("generation_config.json") + ": "), std::string::npos)
      << result.output;
}

// Rows for a step are bounded by the cache, whatever is asked for.
TEST(CommandLine, HugeChunks) {
  const std::string command =
      "generate --prompt x --max-new-tokens 1 --max-total-tokens 1024 --chunked-prefill-size {} "
      "--model " WINNOW_SOURCE_DIR "/models/winnow-mini";
  for (const char* size : {"2147483647", "100000000", "1024"}) {
    const auto result = winnow(fmt::format(fmt::runtime(command), size));
    EXPECT_EQ(result.exit_code, 0) << size << result.output;
  }
}

TEST(CommandLine, Version) {
  const auto version = winnow("--version");
  EXPECT_EQ(version.exit_code, 0);
  for (const char* words : {"winnow 0.", "git revision ", "CPU kernels ", "this machine takes "}) {
    EXPECT_NE(version.output.find(words), std::string::npos) << version.output;
  }
  expect_refusal("serve --version", "there is no option --version");
}

TEST(CommandLine, HelpAndAnythingBehindTheDashes) {
  const auto help = winnow("bench serving --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("--request-rate X=inf"), std::string::npos) << help.output;
  expect_refusal("inspect -- --memory", "--memory: no such folder");
}

}  // namespace
}  // namespace winnow
