#include "eval/code_sandbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "eval/humaneval_task.h"

namespace winnow::eval {
namespace {

class CodeSandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  }
};

TEST_F(CodeSandbox, PassesAndFails) {
  EXPECT_EQ(run_python("assert 1 + 1 == 2"), ProgramEnd::kPassed);
  EXPECT_EQ(run_python("assert 1 + 1 == 3"), ProgramEnd::kFailed);
  EXPECT_EQ(run_python("def"), ProgramEnd::kFailed);
  EXPECT_EQ(run_python("import os; os.kill(os.getpid(), 9)"), ProgramEnd::kFailed);
}

TEST_F(CodeSandbox, EndsWhatDoesNotEnd) {
  const SandboxLimits soon{.timeout_s = 0.3};
  EXPECT_EQ(run_python("import time; time.sleep(60)", soon), ProgramEnd::kTimedOut);
  EXPECT_EQ(run_python("while True: pass", soon), ProgramEnd::kTimedOut);
}

TEST_F(CodeSandbox, LimitsMemoryFilesProcessesAndNetwork) {
  EXPECT_EQ(run_python("x = bytearray(4 << 30)"), ProgramEnd::kFailed);
  EXPECT_EQ(run_python("import tempfile\nf = tempfile.TemporaryFile()\n"
                       "for i in range(64): f.write(bytes(1 << 16))\nf.flush()"),
            ProgramEnd::kFailed);
  EXPECT_EQ(run_python("import os\nos.fork()"), ProgramEnd::kFailed);
  EXPECT_EQ(run_python("import os\nassert dict(os.environ).keys() <= {'PATH', 'LC_CTYPE'}"),
            ProgramEnd::kPassed);
  EXPECT_EQ(run_python("import os\nassert os.getuid() != 0"), ProgramEnd::kPassed);
  if (!sandbox_cuts_network()) return;
  EXPECT_EQ(run_python("import socket\ns = socket.socket()\ns.settimeout(1)\n"
                       "s.connect(('127.0.0.1', 22))"),
            ProgramEnd::kFailed);
  EXPECT_EQ(run_python("import socket\nassert [n for _, n in socket.if_nameindex()] == ['lo']"),
            ProgramEnd::kPassed);
}

TEST_F(CodeSandbox, RunsAnAnswerToAHumanevalTask) {
  const auto rows = json_records(
      "h.jsonl", R"({"task_id":"t/0","entry_point":"twice","prompt":"def twice(x):\n)"
                 R"(    \"\"\"Doubles.\"\"\"\n","test":"def check(f):\n    assert f(2) == 4"})");
  const Task task =
      humaneval_task(rows, {.run = [](const std::string& program) { return run_python(program); }});
  EXPECT_EQ(task.grade(0, "```python\ndef twice(x):\n    return 2 * x\n```").extracted, "passed");
  EXPECT_EQ(task.grade(0, "```python\n    return 2 * x\n```").extracted, "passed");
  EXPECT_EQ(task.grade(0, "```python\ndef twice(x):\n    return x\n```").extracted, "failed");
}

}  // namespace
}  // namespace winnow::eval
