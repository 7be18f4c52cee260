// A program that runs beside the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace winnow::testing {

class ChildProcess {
 public:
  // args[0] is the program. stdout and stderr come together.
  explicit ChildProcess(std::vector<std::string> args);
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Reads output until it holds the text; false when the program ends first or after a minute.
  bool wait_for(std::string_view text);
  void signal(int number) const;
  // Exit code, 128 + signal when it was killed; what it still wrote joins output().
  int wait();
  const std::string& output() const { return output_; }

 private:
  bool read_some();
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
};

}  // namespace winnow::testing
