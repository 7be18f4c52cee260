#include "testing/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

extern char** environ;

namespace winnow::testing {

ChildProcess::ChildProcess(std::vector<std::string> args) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (failed != 0) throw std::runtime_error("cannot run " + args[0]);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(pipe_);
}

bool ChildProcess::read_some() {
  constexpr int kTimeoutMs = 60000;
  pollfd entry{pipe_, POLLIN, 0};
  if (::poll(&entry, 1, kTimeoutMs) <= 0) return false;
  char chunk[4096];
  const ssize_t n = ::read(pipe_, chunk, sizeof chunk);
  if (n <= 0) return false;
  output_.append(chunk, static_cast<size_t>(n));
  return true;
}

bool ChildProcess::wait_for(std::string_view text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_some()) return false;
  }
  return true;
}

void ChildProcess::signal(int number) const { ::kill(pid_, number); }

int ChildProcess::wait() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace winnow::testing
